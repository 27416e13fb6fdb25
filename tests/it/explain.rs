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
