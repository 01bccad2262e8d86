//! What podgate costs as a server: the real binary, over real TLS on loopback.
//!
//! `requests`: beside a server that decides nothing, `handshakes`: what a new connection costs,
//! `memory`: what stays resident, `start`: how soon it answers. `make bench` and `make bench-NAME`.

#![allow(clippy::expect_used, reason = "a benchmark that cannot go on has failed")]

mod client;
mod contestant;
mod handshakes;
mod memory;
mod process;
mod requests;
#[path = "../reviews.rs"]
mod reviews;
mod start;

fn main() {
    // cargo bench adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["requests"] => requests::compare(),
        ["handshakes"] => handshakes::compare(),
        ["memory"] => memory::measure(),
        ["start"] => start::measure(),
        ["no-op", folder] => contestant::serve_no_op(folder.as_ref()),
        _ => {
            eprintln!("one of: requests, handshakes, memory, start");
            std::process::exit(2);
        }
    }
}
