//! `kanon explain`: the page says what the record says, for releases by levels and by regions.

use crate::command::Place;
use crate::releases::people;

const POLICY: &str = "k = 3\nothers = \"drop\"\nrows_are_individuals = true\nsuppression_limit = 0.05\naccept_homogeneity = [\"ward\"]\n\
    [[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"\n[columns]\n\
    sex = { role = \"quasi\" }\nage = { role = \"quasi\", hierarchy = { range = [10, 50] } }\n\
    diagnosis = { role = \"sensitive\" }\nward = { role = \"sensitive\" }\n";

#[test]
fn the_page_says_what_the_record_says() {
    let place = Place::new();
    place.parquet("in.parquet", &people(2));
    for method in ["auto", "mondrian"] {
        place.write("p.toml", POLICY.replace("k = 3\n", &format!("k = 3\nmethod = \"{method}\"\n")));
        place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0);
        let page = place.run("explain out").exit(0).out;
        let record = place.run("explain out --format json").exit(0).json();
        for model in record["models"].as_array().unwrap() {
            let (name, reached) = (model["model"].as_str().unwrap(), &model["reached"]);
            let line = page.lines().find(|line| line.starts_with(&format!("- `{name}`"))).unwrap();
            assert!(line.contains(&format!("the worst group reaches {reached}")), "{line} {model}");
        }
        for column in record["tables"][0]["columns"].as_array().unwrap() {
            let line =
                format!("| `{}` | {} |", column["name"].as_str().unwrap(), column["role"].as_str().unwrap());
            assert!(page.contains(&line), "{line} is not in {page}");
        }
        assert!(!page.contains("ssn"), "{page}");
        let own = page.lines().find(|line| line.starts_with("| `age` |")).unwrap();
        assert!(own.contains(if method == "auto" { "in every row" } else { "in each group" }), "{own}");
        for one in record["homogeneous"].as_array().unwrap() {
            let says =
                page.contains(&format!("one value of `{}`: it is known", one["column"].as_str().unwrap()));
            assert_eq!(says, one["classes"].as_u64() > Some(0), "{one}");
        }
    }
    place.run("explain in.parquet").exit(3).says("is this a release of kanon?");
    let record = place.path("out/_kanon.json");
    let edited = std::fs::read_to_string(&record).unwrap().replace("l_diversity", "l_diversities");
    std::fs::write(&record, edited).unwrap();
    place.run("explain out").exit(1).says("edited or damaged");
}

/// The last label of a hierarchy file can say something, so only `*` and NULL are called suppressed.
#[test]
fn one_label_for_all_is_told() {
    let place = Place::new();
    place.write("in.csv", "q,s\na,x\nb,y\nc,x\nd,y\n");
    let policy = "k = 2\nrows_are_individuals = true\n[columns]\n\
                  q = { role = \"quasi\", hierarchy = { file = \"q.csv\" } }\ns = { role = \"quasi\" }\n";
    place.write("p.toml", policy);
    for (top, says, page) in [
        ("T1", "q one label for all: T1", "one label for all: `T1`: level 1 of 1, in every row"),
        ("T|1", "q one label for all: T|1", "one label for all: `T\\|1`: level 1 of 1, in every row"),
        ("*", "q suppressed", "nothing: all values are suppressed"),
    ] {
        place.write("q.csv", ["a", "b", "c", "d"].map(|value| format!("{value};{top}\n")).concat());
        let searched = place.run("search in.csv --policy p.toml --top 1").exit(0).out;
        assert!(searched.contains(&format!("  {says} | s as is")), "{searched}");
        let released = place.run("release in.csv --policy p.toml --to out --overwrite").exit(0).out;
        assert!(released.contains(&format!("chosen    {says} | s as is\n")), "{released}");
        let explained = place.run("explain out").exit(0).out;
        assert!(explained.contains(&format!("| `q` | quasi | {page} |\n")), "{explained}");
        let verified = place.run("verify out").exit(0).out;
        assert!(verified.contains(&format!("coarsest  {says} (1 of 1)\n")), "{verified}");
        // What every version reads.
        let record = place.run("explain out --format json").exit(0).json();
        assert_eq!(record["recoding"]["levels"][0]["by"], serde_json::json!({ "generalizer": "suppress" }));
    }
    // Without the rows the record alone speaks.
    std::fs::remove_file(place.path("out/part-00000.parquet")).unwrap();
    place.run("explain out").exit(0);
}

/// What the rows cannot show is the publisher's word, and the page says so.
#[test]
fn the_publisher_states() {
    let place = Place::new();
    place.parquet("in.parquet", &people(2));
    place.write("p.toml", POLICY);
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    std::fs::remove_file(place.path("out.private.json")).unwrap();
    let page = place.run("explain out").exit(0).out;
    for stated in [
        "The publisher states that the method was `auto`",
        "- The publisher states that at most 5 % of the rows are left out",
        "- The publisher states that each row is another person.",
        "- The publisher states that all rows of a group may share one value of `ward`.",
        "Left out of the release, as the publisher states:\n",
    ] {
        assert!(page.contains(stated), "{stated} is not in {page}");
    }
}
