//! What stays resident: after a start, a million requests, another million, 10,000 connections, and 200 large
//! reviews at once.

use std::time::Duration;

use crate::client;
use crate::contestant::{Contestant, folder_with_certificate};
use crate::{process, reviews};

/// How many connections send at once, as kube-apiserver's do.
const CONNECTIONS: usize = 25;
/// How long memory that is not in use any more has until it is looked at.
const PAUSE: Duration = Duration::from_secs(2);

/// Prints the table.
pub(crate) fn measure() {
    let folder = folder_with_certificate();
    let server = Contestant::podgate(folder.path());
    println!("| after | resident MiB | at most MiB |");
    println!("|---|---|---|");
    let show = |event: &str| {
        std::thread::sleep(PAUSE);
        let [now, most] = ["VmRSS", "VmHWM"].map(|line| process::memory_mib(server.id(), line));
        println!("| {event} | {now:.1} | {most:.1} |");
    };
    show("start");
    requests(&server, 1_000_000);
    show("1,000,000 requests");
    requests(&server, 1_000_000);
    show("1,000,000 more");
    connections(&server, 10_000);
    show("10,000 connections that came and went");
    let answers = large_reviews(&server, 200);
    show(&format!("200 reviews of 6 MiB at once ({answers})"));
    requests(&server, 100_000);
    show("100,000 requests more");
}

fn requests(server: &Contestant, count: usize) {
    exchange(server, CONNECTIONS, count / CONNECTIONS);
}

fn connections(server: &Contestant, count: usize) {
    exchange(server, count, 1);
}

/// Makes so many connections, some at once, and sends so many requests on each.
fn exchange(server: &Contestant, connections: usize, requests: usize) {
    let tls = client::trusting(&server.authority, &[b"http/1.1"], None);
    let request = client::post("/mutate", &reviews::body(&reviews::small()));
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut buffer = vec![0; 64 << 10];
                for _ in 0..connections / CONNECTIONS {
                    let mut stream = client::connect(server.addr, &tls).expect("the server accepts");
                    for _ in 0..requests {
                        client::must_exchange(&mut stream, &request, &mut buffer);
                    }
                }
            });
        }
    });
}

/// How many of the answers were 200 and 503; no other is right.
fn large_reviews(server: &Contestant, count: usize) -> String {
    let tls = client::trusting(&server.authority, &[b"http/1.1"], None);
    let body = reviews::body(&reviews::with_environment(6 << 20));
    let request = client::post("/mutate", &body);
    let connect = |_| client::connect(server.addr, &tls).expect("the server accepts");
    let streams: Vec<_> = (0..count).map(connect).collect();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let send = |mut stream| {
            let request = &request;
            scope.spawn(move || client::exchange(&mut stream, request, &mut vec![0; 64 << 10]).unwrap_or_default())
        };
        let clients: Vec<_> = streams.into_iter().map(send).collect();
        clients.into_iter().map(|client| client.join().expect("no thread panics")).collect()
    });
    let count_of = |status: u16| statuses.iter().filter(|found| **found == status).count();
    format!("{} × 200, {} × 503, {} closed before an answer", count_of(200), count_of(503), count_of(0))
}
