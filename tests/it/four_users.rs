//! Four users with the files that people have: `tests/four_users.sh` plays them, and each path ends
//! in a verified release or in a message that names what mends it. The transcript is meant to be
//! read: `bash tests/four_users.sh KANON FOLDER`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::process::Command;

#[test]
#[cfg(unix)]
fn all_four_users_arrive() {
    let place = crate::command::Place::new();
    let script = crate::house::root().join("tests/four_users.sh");
    let ran = Command::new("bash")
        .arg(script)
        .arg(crate::command::program())
        .arg(place.path("play"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let end: Vec<&str> = said.lines().rev().take(40).collect();
    let end: Vec<&str> = end.into_iter().rev().collect();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.success() && said.ends_with("all four users arrived\n"),
        "{}\n{errors}",
        end.join("\n")
    );
}
