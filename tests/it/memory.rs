//! Peak memory: every command stays within 1.1 times its limit and 128 MiB, whether it ends well or refuses.
//!
//! The peak is `VmHWM` of the process, read until it ends. `KANON_MEMORY_ROWS` sets the rows of the
//! table and `KANON_MEMORY_LIMITS` the limits in MiB, such as `150,300,400`; `tests/long.sh` takes
//! more of both.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::command::Place;
use crate::house::root;

const MIB: u64 = 1 << 20;

fn numbers(variable: &str, default: &str) -> Vec<u64> {
    let text = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    text.split(',').map(|number| number.trim().parse().unwrap()).collect()
}

/// Runs a command; returns its exit code, what it said and the most resident memory it had.
fn peak(place: &Place, line: &str, word: Option<&str>) -> (i32, String, u64) {
    let mut command = place.command(line);
    command.args(word).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let this_program = std::env::current_exe().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        // A process that was just spawned may still share the memory of the test process.
        if std::fs::read_link(process.join("exe")).is_ok_and(|exe| exe != this_program) {
            let text = std::fs::read_to_string(process.join("status")).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib: u64 = line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse().unwrap());
            most = most.max(kib * 1024);
        }
        if most > 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let output = child.wait_with_output().unwrap();
    assert!(most > 0, "`{line}` ended before its memory was read");
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap(), most)
}

#[test]
fn no_command_takes_much_more_memory_than_its_limit() {
    let place = Place::new();
    let rows = numbers("KANON_MEMORY_ROWS", "200000")[0];
    place.run(&format!("generate --rows {rows} --to v.parquet")).exit(0);
    for name in ["visits.toml", "education.csv", "marital_status.csv"] {
        place.write(name, std::fs::read(root().join("data").join(name)).unwrap());
    }
    place.run("release v.parquet --policy visits.toml --to made").exit(0);
    place.run("hierarchy v.parquet dob --by 'date = [\"month\"]' --to dob.csv").exit(0);
    let quasi = "dob, zip, sex, race, education, marital_status";
    let queries = [
        format!("SELECT k_anonymity({quasi}), l_diversity(diagnosis, {quasi}) FROM 'v.parquet'"),
        format!("SELECT share_at_risk_individuals(0.2, patient_id, {quasi}) FROM 'v.parquet'"),
        format!("SELECT k_anonymity_individuals(patient_id, {quasi}) FROM 'v.parquet'"),
        "SELECT * FROM risk('v.parquet', 'dob', 'zip', 'sex', individual => 'patient_id')".to_owned(),
        "SELECT max(distinct_diagnosis) FROM classes('v.parquet', 'dob', 'zip', sensitive => 'diagnosis', \
         sensitive => 'cost', individual => 'patient_id')"
            .to_owned(),
        "SELECT count(*) FROM anonymize('v.parquet', 'visits.toml')".to_owned(),
        "SELECT count(*) FROM lattice('v.parquet', 'visits.toml')".to_owned(),
    ];
    let commands = [
        "check v.parquet --quasi dob,zip,sex,race --k 5".to_owned(),
        "check v.parquet --policy visits.toml".to_owned(),
        "search v.parquet --policy visits.toml".to_owned(),
        "release v.parquet --policy visits.toml --to out --overwrite".to_owned(),
        "verify made".to_owned(),
        "verify made --input v.parquet".to_owned(),
        "risk v.parquet --policy visits.toml".to_owned(),
        "risk v.parquet --quasi dob,zip,sex".to_owned(),
        "link v.parquet made --on dob,sex,zip".to_owned(),
        "link v.parquet v.parquet --on dob,sex,zip".to_owned(),
        "init v.parquet".to_owned(),
        "hierarchy v.parquet patient_id --by 'prefix = [2]' --to made.csv --overwrite".to_owned(),
        "hierarchy check dob.csv --input v.parquet".to_owned(),
        format!("generate --rows {rows} --overwrite --to g.parquet"),
    ];
    let mut wrong = Vec::new();
    for limit in numbers("KANON_MEMORY_LIMITS", "150") {
        let allowed = limit * MIB * 11 / 10 + 128 * MIB;
        let queries = queries.iter().map(|query| ("sql -c", Some(query.as_str())));
        for (line, word) in commands.iter().map(|line| (line.as_str(), None)).chain(queries) {
            let (line, shown) = match word {
                Some(query) => (format!("sql --memory-limit {limit}M -c"), query),
                None => (format!("{line} --memory-limit {limit}M"), line),
            };
            let (code, said, most) = peak(&place, &line, word);
            println!("{limit} MiB: peak {} MiB, exit {code}: {shown}", most / MIB);
            // A check or search may find that nothing holds; any other end must be the refusal for
            // want of memory.
            let refused = code == 3 && said.contains("--memory-limit");
            if most > allowed || !(code == 0 || code == 1 || refused) {
                wrong.push(format!("{limit} MiB: peak {} MiB, exit {code}: {shown}\n{said}", most / MIB));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A measure gives the same answer under little memory, or says that it needs more: under 16 MiB, or 2
/// bytes a row, a twentieth of what ten million visits take. `KANON_SPILL_ROWS` sets the rows; few of
/// them fit into memory.
#[test]
fn measures_answer_the_same_under_little_memory() {
    let place = Place::new();
    let rows = numbers("KANON_SPILL_ROWS", "100000")[0];
    place.run(&format!("generate --rows {rows} --to v.parquet")).exit(0);
    let little = (rows * 2).max(16 * MIB);
    for quasi in [
        "dob, zip, sex, race, education, marital_status",
        "generalize_date(dob, 'decade'), generalize_prefix(zip, 3), sex, race, education, marital_status",
    ] {
        let mut answered = 0;
        for measures in [
            format!("k_anonymity({quasi})"),
            format!("k_anonymity({quasi}), l_diversity(diagnosis, {quasi})"),
            format!("entropy_l_diversity(diagnosis, {quasi}), recursive_l_diversity(2, diagnosis, {quasi})"),
            format!("k_anonymity_individuals(patient_id, {quasi})"),
            format!("l_diversity_individuals(patient_id, diagnosis, {quasi})"),
            format!("average_risk({quasi}), share_at_risk(0.2, {quasi})"),
            format!("share_at_risk_individuals(0.2, patient_id, {quasi})"),
            format!("t_closeness(diagnosis, {quasi}), delta_disclosure(diagnosis, {quasi})"),
        ] {
            let ask = |limit: u64| {
                let query = format!("SELECT {measures} FROM 'v.parquet'");
                let mut command = place.command(&format!("sql --output csv --memory-limit {limit} -c"));
                let output = command.arg(query).stdin(Stdio::null()).output().unwrap();
                let text = |bytes| String::from_utf8(bytes).unwrap();
                (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
            };
            let ((plenty, answer, said), (code, same, why)) = (ask(8 << 30), ask(little));
            assert_eq!(plenty, 0, "{measures}: {said}");
            println!("{little} bytes, exit {code}: {measures}");
            match code {
                0 => assert_eq!(same, answer, "{measures}"),
                _ => assert!(code == 3 && why.contains("--memory-limit"), "{measures}: {why}"),
            }
            answered += u64::from(code == 0);
        }
        assert!(answered > 0, "{quasi}");
    }
}
