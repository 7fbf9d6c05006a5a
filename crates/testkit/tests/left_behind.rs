//! What is left when a program with a lab is killed: nothing.
#![allow(clippy::unwrap_used, reason = "an error here is a failed test")]

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use spanwire_testkit::{
    lab::Lab,
    process::{Process, Program},
};

const PART: &str = "SPANWIRE_TESTKIT_VICTIM";
const LIMIT: Duration = Duration::from_secs(10);

fn sleeper(lab: &mut Lab) -> Process {
    Process::start(Program {
        name: "sleeper".into(),
        path: "/bin/sleep".into(),
        arguments: vec!["600".into()],
        variables: Vec::new(),
        host: Some(lab.host("a").unwrap()),
        log: PathBuf::from("/dev/null"),
    })
    .unwrap()
}

/// Not a test of its own: the program that the other test kills.
#[test]
fn the_victim() {
    if std::env::var_os(PART).is_none() {
        return;
    }
    let mut lab = Lab::new().unwrap();
    let child = sleeper(&mut lab);
    println!("\nchild {}", child.pid());
    std::thread::park_timeout(LIMIT * 6);
}

#[test]
fn children_die_with_a_program_that_is_killed() {
    if let Some(why) = Lab::why_not() {
        eprintln!("skipped: {why}");
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_victim", "--nocapture"])
        .env(PART, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(victim.stdout.take().unwrap());
    let child =
        output.lines().find_map(|line| line.unwrap().strip_prefix("child ").map(str::to_owned)).unwrap();
    let place = PathBuf::from(format!("/proc/{child}/ns/net"));
    assert!(place.exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    let end = Instant::now() + LIMIT;
    while place.exists() {
        assert!(Instant::now() < end, "the child outlived its maker");
        std::thread::yield_now();
    }
}

#[test]
fn a_panic_takes_everything_down() {
    if let Some(why) = Lab::why_not() {
        eprintln!("skipped: {why}");
        return;
    }
    let (tell, told) = std::sync::mpsc::channel();
    let panicked = std::thread::spawn(move || {
        let mut lab = Lab::new().unwrap();
        let child = sleeper(&mut lab);
        tell.send(child.pid()).unwrap();
        panic!("as a scenario might");
    })
    .join();
    assert!(panicked.is_err());
    let child = told.recv().unwrap();
    assert!(!PathBuf::from(format!("/proc/{child}")).exists());
}
