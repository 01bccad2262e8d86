//! How many instructions an answer takes, as callgrind counts them: as good as the same on every run, however busy
//! the machine is. `make bench-instructions`; needs valgrind.

#![allow(clippy::expect_used, reason = "a benchmark that cannot go on has failed")]

mod reviews;

use std::hint::black_box;
use std::process::Command;

use podgate::{admission, review};
use reviews::Case;
use serde_json::Value;

/// What is counted, in the order of the columns.
const MEASURED: [&str; 3] = ["answer", "decode", "value"];
/// How often it is done in the two runs whose difference counts, so that the start of the program does not.
const TIMES: [u32; 2] = [4, 14];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print_table(),
        [measured, case, times] => {
            let case: usize = case.parse().expect("a number");
            run(measured, &reviews::cases()[case], times.parse().expect("a number"));
        }
        _ => panic!("without arguments"),
    }
}

fn print_table() {
    println!("| review | path | bytes | answer | of it decode | serde_json::Value | answer / Value |");
    println!("|---|---|---|---|---|---|---|");
    for (index, case) in reviews::cases().iter().enumerate() {
        let [answer, decode, value] = MEASURED.map(|measured| {
            let [few, many] = TIMES.map(|times| instructions(measured, index, times));
            (many - few) / u64::from(TIMES[1] - TIMES[0])
        });
        let percent = answer * 100 / value;
        println!(
            "| {} | {} | {} | {answer} | {decode} | {value} | {percent} % |",
            case.name,
            case.path,
            case.body.len()
        );
    }
}

/// The instructions of a run of this program under callgrind.
fn instructions(measured: &str, case: usize, times: u32) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().expect("this program has a path"))
        .args([measured, &case.to_string(), &times.to_string()])
        .output()
        .expect("valgrind is installed, as with `apt-get install valgrind`");
    let report = String::from_utf8_lossy(&output.stderr);
    let collected = report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    collected.unwrap_or_else(|| panic!("no count in what valgrind says:\n{report}"))
}

fn run(measured: &str, case: &Case, times: u32) {
    let (policies, today) = (reviews::policies(), reviews::today());
    for _ in 0..times {
        let body = black_box(case.body.as_slice());
        match measured {
            "answer" => drop(black_box(admission::answer(&policies, case.webhook, body, today))),
            "decode" => drop(black_box(review::read(body))),
            _ => drop(black_box(serde_json::from_slice::<Value>(body))),
        }
    }
}
