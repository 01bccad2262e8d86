//! How soon podgate answers after its start.

use std::time::{Duration, Instant};

use crate::contestant::{Contestant, folder_with_certificate};
use crate::{client, reviews};

/// How often it is started.
const STARTS: usize = 21;

/// Prints the figure.
pub(crate) fn measure() {
    let folder = folder_with_certificate();
    let request = client::post("/mutate", &reviews::body(&reviews::small()));
    let mut times: Vec<Duration> = (0..STARTS)
        .map(|_| {
            let started = Instant::now();
            let server = Contestant::podgate(folder.path());
            let tls = client::trusting(&server.authority, &[b"http/1.1"], None);
            let mut stream = client::connect(server.addr, &tls).expect("the server accepts");
            client::must_exchange(&mut stream, &request, &mut vec![0; 64 << 10]);
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let [least, median, most] = [0, STARTS / 2, STARTS - 1].map(|index| millis(times[index]));
    println!("From the start to the first answer: {median:.1} ms ({least:.1} to {most:.1}, {STARTS} starts)");
}
