//! What command lines say over every kind of release, byte for byte: `recorded/*.txt`, one story each, told in a folder of
//! its own with the inputs of [`inputs`].
//!
//! A line `file NAME` begins a file of the story, whose lines begin with `| `. A line `$ ...` runs `kanon`; then follow its
//! exit code, standard output (`> `), standard error (`! `), and, with a digest, each file that it made, changed or removed
//! (`= `). Seconds and what is drawn at random are `#`; a story with the line `random files` has `#` for every digest, one
//! with `random numbers` for every number, too. `KANON_RECORDED_UPDATE=1` writes what comes out instead of comparing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::command::Place;
use crate::house::root;

/// Writes `people.csv`, 360 rows of 300 people; `persons.csv`, a row for each; `voters.csv`, what an attacker knows of
/// some; `ward.csv`, a hierarchy; `clinic.csv`, other people in the same columns.
fn inputs(place: &Place) {
    let header = "person,name,dob,age,zip,sex,weight,ward,diagnosis,stay\n";
    let row = |person: u64| {
        // A mixed number for each column.
        let draw = |column: u64| {
            let mixed = (person * 31 + column * 7 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed ^ (mixed >> 29)) >> 7
        };
        let age = 18 + draw(1) % 60;
        let weight = if draw(2) % 60 == 0 { String::new() } else { format!("{}.5", 50 + draw(2) % 50) };
        format!(
            "{person},P{person},{}-{:02}-{:02},{age},{:05},{},{weight},{},{},{}\n",
            2024 - age,
            1 + draw(3) % 12,
            1 + draw(4) % 28,
            10_000 + draw(5) % 4 * 1_000 + draw(6) % 9,
            ["f", "m", "f", "m", "x"][(draw(7) % 5) as usize],
            ["a1", "a2", "b1", "b2", "b3"][(draw(8) % 5) as usize],
            ["flu", "hiv", "ulcer", "asthma", "fracture", "gout"][(draw(9) % 6) as usize],
            1 + draw(10) % 6,
        )
    };
    let rows = |persons: &mut dyn Iterator<Item = u64>| persons.map(row).collect::<String>();
    let persons = rows(&mut (0..300));
    place.write("persons.csv", format!("{header}{persons}"));
    place.write("people.csv", format!("{header}{persons}{}", rows(&mut (0..300).step_by(5))));
    place.write("clinic.csv", format!("{header}{}", rows(&mut (1_000..1_300))));
    let known = |line: &str| line.split(',').skip(1).take(5).collect::<Vec<_>>().join(",") + "\n";
    let voters: String = persons.lines().step_by(9).map(known).collect();
    place.write("voters.csv", format!("name,dob,age,zip,sex\n{voters}"));
    place.write("ward.csv", "a1,a,*\na2,a,*\nb1,b,*\nb2,b,*\nb3,b,*\n");
}

/// What is drawn or measured anew in each run.
const DRAWN: [&str; 4] = ["\"seconds\": ", "\"hmac_sha256\": ", "\"digest_key\": ", "\"dealing_key\": "];

/// What differs from run to run in a story besides.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Random {
    Nothing,
    Files,
    Numbers,
}

/// Replaces what differs from run to run.
fn plain(text: &str, random: Random) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '.';
    let mut plain = String::new();
    for line in text.lines() {
        let of_files = if random == Random::Nothing { &[][..] } else { &["\"bytes\": "] };
        if let Some((before, _)) = DRAWN.iter().chain(of_files).find_map(|key| line.split_once(key)) {
            writeln!(plain, "{before}#").unwrap();
            continue;
        }
        let mut rest = line;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.find(|char| !is_part(char)).unwrap_or(rest.len()));
            let is_number = part.starts_with(|char: char| char.is_ascii_digit());
            let are_seconds = is_number && after.starts_with(" s") && !after[2..].starts_with(is_part);
            let is_drawn = are_seconds
                || (random >= Random::Files && part.len() >= 32)
                || (random == Random::Numbers && is_number);
            plain += if is_drawn { "#" } else { part };
            let next = after.find(is_part).unwrap_or(after.len());
            plain += &after[..next];
            rest = &after[next..];
        }
        plain.push('\n');
    }
    plain
}

/// A digest of a file, without what differs from run to run.
fn digest(name: &str, bytes: &[u8], folder: &str) -> String {
    let is_text = name.ends_with(".json");
    let text =
        is_text.then(|| plain(&String::from_utf8_lossy(bytes).replace(folder, "FOLDER"), Random::Nothing));
    let mut hasher = SipHasher13::new();
    hasher.write(text.as_ref().map_or(bytes, |text| text.as_bytes()));
    format!("{:032x}", hasher.finish128().as_u128())
}

fn prefixed(told: &mut String, prefix: &str, text: &str) {
    text.lines().for_each(|line| writeln!(told, "{}", format!("{prefix} {line}").trim_end()).unwrap());
}

/// Tells a story anew: its lines without what came out, then what comes out.
fn tell(story: &str) -> String {
    let place = Place::new();
    inputs(&place);
    let folder = place.path("").canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    let is_told = |line: &str| story.lines().any(|told| told == line);
    let random = match (is_told("random numbers"), is_told("random files")) {
        (true, _) => Random::Numbers,
        (_, true) => Random::Files,
        _ => Random::Nothing,
    };
    let mut known = place.tree();
    let mut told = String::new();
    let mut file: Option<(String, String)> = None;
    for line in story
        .lines()
        .filter(|line| !["> ", "! ", "= ", "exit "].iter().any(|start| format!("{line} ").starts_with(start)))
    {
        writeln!(told, "{line}").unwrap();
        if let Some(content) = line.strip_prefix("| ") {
            file.as_mut().unwrap().1.push_str(&format!("{content}\n"));
            continue;
        }
        if let Some((name, content)) = file.take() {
            place.write(&name, content);
            known = place.tree();
        }
        if let Some(name) = line.strip_prefix("file ") {
            file = Some((name.to_owned(), String::new()));
        }
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let ran = place.run(command);
        writeln!(told, "exit {}", ran.code).unwrap();
        let said = |text: &str| plain(&text.replace(folder, "FOLDER"), random);
        prefixed(&mut told, ">", &said(&ran.out));
        prefixed(&mut told, "!", &said(&ran.err));
        let now = place.tree();
        prefixed(&mut told, "=", &differences(&known, &now, (folder, random)));
        known = now;
    }
    told
}

fn differences(
    before: &BTreeMap<String, Vec<u8>>,
    now: &BTreeMap<String, Vec<u8>>,
    (folder, random): (&str, Random),
) -> String {
    let mut lines = String::new();
    for (name, bytes) in
        now.iter().filter(|(name, bytes)| before.get(*name) != Some(*bytes) && !bytes.is_empty())
    {
        let digest = if random == Random::Nothing { digest(name, bytes, folder) } else { "#".to_owned() };
        writeln!(lines, "{name} {digest}").unwrap();
    }
    for name in before.keys().filter(|name| !now.contains_key(*name)) {
        writeln!(lines, "{name} is gone").unwrap();
    }
    lines
}

fn check(name: &str) {
    let path = root().join("tests/it/recorded").join(name);
    let story = std::fs::read_to_string(&path).unwrap();
    let told = tell(&story);
    if std::env::var_os("KANON_RECORDED_UPDATE").is_some() {
        std::fs::write(&path, told).unwrap();
        return;
    }
    let mut command = "";
    for (at, (before, now)) in story.lines().zip(told.lines()).enumerate() {
        command = before.strip_prefix("$ ").unwrap_or(command);
        assert_eq!(before, now, "{name}:{}, of `kanon {command}`", at + 1);
    }
    assert_eq!(story.lines().count(), told.lines().count(), "{name}: more or fewer lines");
}

/// One test a story, so that they run at once.
macro_rules! stories {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(concat!(stringify!($name), ".txt")); })*

        #[test]
        fn every_story_is_told() {
            let files = std::fs::read_dir(root().join("tests/it/recorded")).unwrap();
            let mut files: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            files.sort();
            let mut stories = vec![$(concat!(stringify!($name), ".txt")),*];
            stories.sort_unstable();
            assert_eq!(files, stories);
        }
    };
}

stories! {
    best cells centroids centroids_of_people checks clusters found_policy groups groups_of_people hierarchies
    levels levels_of_people links listed local noise noise_of_people nothing proposals refusals regions
    regions_of_people said searches subtree tables usage
}
