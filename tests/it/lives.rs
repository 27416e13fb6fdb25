//! `kanon plan`: lives of releases, replayed.

use serde_json::{Value, json};

use crate::command::Place;

const POLICY: &str = "k = 3\nmethod = \"mondrian\"\nsuppression_limit = 0.1\nothers = \"drop\"\naccept_homogeneity = [\"illness\"]\n\
    [columns]\nperson = { role = \"individual\" }\nage = { role = \"quasi\" }\nzip = { role = \"quasi\" }\n\
    illness = { role = \"sensitive\", allow_unique = true }\n[history]\nrow = [\"visit\"]\n";

fn scene() -> Place {
    let place = Place::new();
    let line = |n: u32| {
        let visits = if n.is_multiple_of(5) { 2 } else { 1 };
        let visit = |visit: u32| {
            format!(
                "p{n},{visit},{},{},{}\n",
                n * 7 % 60,
                1000 + n * 13 % 40,
                ["flu", "gout"][n as usize % 2]
            )
        };
        (0..visits).map(visit).collect::<String>()
    };
    place.write(
        "in.csv",
        "person,visit,age,zip,illness\n".to_owned() + &(0..400).map(line).collect::<String>(),
    );
    place.write("p.toml", POLICY);
    place
}

fn versions(answer: &Value, life: usize) -> Vec<Value> {
    answer["lives"][life]["versions"].as_array().unwrap().clone()
}

#[test]
fn people_arrive_and_leave_as_often_as_said() {
    let place = scene();
    let plan = |options: &str| {
        place.run(&format!("plan in.csv --policy p.toml --format json {options}")).exit(0).json()
    };
    let people = |answer: &Value| -> Vec<u64> {
        versions(answer, 0).iter().map(|one| one["individuals"].as_u64().unwrap()).collect()
    };
    // The last release has everybody, if nobody leaves.
    let grows = plan("--versions 4 --arrive 20%");
    let counts = people(&grows);
    assert_eq!(counts[3], 400);
    for pair in counts.windows(2) {
        let share = pair[1] as f64 / pair[0] as f64 - 1.0;
        assert!((0.1..0.3).contains(&share), "{counts:?}");
    }
    assert_eq!(grows, plan("--versions 4 --arrive 0.2 --seed 1"));
    assert_ne!(grows, plan("--versions 4 --arrive 0.2 --seed 2"));
    let first = &versions(&grows, 0)[0];
    assert_eq!(
        (first["not_shown"].clone(), first["loss"].clone()),
        (json!(null), first["loss_alone"].clone())
    );
    // Nobody arrives: all are there at first.
    let shrinks = plan("--versions 3 --arrive 0% --leave 10%");
    let counts = people(&shrinks);
    assert!(
        counts[0] == 400 && (340..380).contains(&counts[1]) && (300..345).contains(&counts[2]),
        "{counts:?}"
    );
    let last = &versions(&shrinks, 0)[2];
    assert!(
        last["shown"].as_u64() < last["individuals"].as_u64()
            && last["loss"].as_f64() > last["loss_alone"].as_f64()
    );
    let not_shown = &last["not_shown"];
    let people = ["moved", "companions", "left_out"].map(|why| not_shown[why].as_u64().unwrap());
    assert!(people[0] == 0 && people[1] + people[2] > 0, "{not_shown}");
    // Several k.
    let several = plan("--versions 2 --k 2,6");
    assert_eq!(several["best_k"], json!(2));
    assert!(versions(&several, 1)[1]["loss"].as_f64() > versions(&several, 0)[1]["loss"].as_f64());
    let text = place.run("plan in.csv --policy p.toml --versions 2 --k 2,6").exit(0).out;
    assert!(text.contains("k = 2 loses least over 2 releases"), "{text}");
    assert!(!place.path("release_0").exists());
}

#[test]
fn a_life_that_cannot_be_is_refused() {
    let place = scene();
    place.write("none.toml", POLICY.replace("[history]\nrow = [\"visit\"]\n", ""));
    place.run("plan in.csv --policy none.toml").exit(2).says("the policy has no `[history]`");
    place.run("plan in.csv --policy p.toml --versions 1").exit(2).says("--versions: expected 2 to 64");
    place.run("plan in.csv --policy p.toml --leave 120%").exit(2).says("expected a share such as 10% or 0.1");
    let answer = place.run("plan in.csv --policy p.toml --arrive 0 --leave 95% --format json").exit(0).json();
    let why = answer["lives"][0]["refused"].as_str().unwrap();
    assert!(why.contains("the next release would be empty"), "{why}");
}
