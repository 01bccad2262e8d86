//! Memory at the limits: the formula of the README, held by the real binary with its defaults.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, field, flood, frame, request,
    setting, start,
};
use crate::support::{Binary, ask, head, post, read_reply, send, until, within};

const MIB: usize = 1 << 20;
/// What the formula of the README comes to.
const MOST: usize = 200 * MIB;

/// A review of a pod, with so many bytes in all.
fn review(old_object: &str, object: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u",
"kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},
"operation":"UPDATE","namespace":"team-a","userInfo":{{"username":"author"}},
"object":{object},"oldObject":{old_object}}}}}"#
    )
}

/// Reviews that take as much memory as any, on either side of what counts as large.
fn costly() -> Vec<(&'static str, String)> {
    let container = |index: usize| {
        format!(r#"{{"name":"{index}","image":"a","securityContext":{{"privileged":true,"runAsUser":0}}}}"#)
    };
    let list =
        |length: usize, container: &dyn Fn(usize) -> String| (0..length).map(container).collect::<Vec<_>>().join(",");
    let pod = |length: usize, container: &dyn Fn(usize) -> String| {
        let list = list(length, container);
        format!(r#"{{"spec":{{"containers":[{list}],"initContainers":[{list}],"ephemeralContainers":[{list}]}}}}"#)
    };
    let keys = |escape: &str| {
        let keys: Vec<_> = (0..262_144).map(|index| format!(r#""{escape}{index:06}":"""#)).collect();
        format!(r#"{{"metadata":{{"annotations":{{{}}}}},"spec":{{}}}}"#, keys.join(","))
    };
    let image = |text: &str, times: usize| {
        format!(r#"{{"spec":{{"containers":[{{"name":"a","image":"{}"}}]}}}}"#, text.repeat(times))
    };
    vec![
        ("containers", review(&pod(1000, &|_| "{}".to_owned()), &pod(1000, &container))),
        ("small containers", review("{}", &pod(1000, &|index| format!(r#"{{"name":"{index}"}}"#)))),
        ("keys", review(&keys(""), &keys(""))),
        ("escaped keys", review(&keys("\\n"), &keys("\\n"))),
        ("image", review("{}", &image("\\n", 4_100_000))),
    ]
}

#[tokio::test]
async fn explore() {
    for (name, body) in costly() {
        let server = Binary::serve(&[]).await;
        let base = server.memory("VmRSS");
        for path in ["/mutate", "/validate"] {
            for _ in 0..3 {
                let reply = ask(&mut server.connect().await, post(path, &body)).await;
                println!(
                    "{name} {path} {} body {:.1} answer {:.1} base {:.1} peak {:.1} now {:.1}",
                    reply.status,
                    body.len() as f64 / 1e6,
                    reply.body.len() as f64 / 1e6,
                    base as f64 / 1e6,
                    server.memory("VmHWM") as f64 / 1e6,
                    server.memory("VmRSS") as f64 / 1e6
                );
            }
        }
        let body = Arc::new(post("/validate", &body));
        for _ in 0..2 {
            let mut set = JoinSet::new();
            for _ in 0..14 {
                let mut stream = server.connect().await;
                let body = Arc::clone(&body);
                set.spawn(async move { ask(&mut stream, body.as_bytes()).await.status });
            }
            let mut statuses = Vec::new();
            while let Some(status) = set.join_next().await {
                statuses.push(status.unwrap());
            }
            println!(
                "{name} concurrent {statuses:?} peak {:.1} now {:.1}",
                server.memory("VmHWM") as f64 / 1e6,
                server.memory("VmRSS") as f64 / 1e6
            );
        }
        sleep(Duration::from_secs(2)).await;
        println!("{name} later {:.1}", server.memory("VmRSS") as f64 / 1e6);
    }
}
