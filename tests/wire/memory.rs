//! Memory at the limits: the formula of the README, held by the real binary with its defaults.

use std::sync::Arc;

use podgate::server::Limits;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::support::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, PING, RST_STREAM, SETTINGS, field,
    flood, frame, request, setting, start,
};
use crate::support::{Binary, Reply, Tls, ask, head, post, read_reply, send, try_read_reply, until, within};

/// Reviews at a time: more large ones than the memory for bodies has room for.
const AT_A_TIME: usize = 14;

/// Clients that ask on and on without taking an answer: as few as do, for each costs time.
const SLOW_READERS: usize = 4;

/// A small review, as everybody sends.
const REVIEW: &str = include_str!("../reviews/mutate/deployments-create-dep.json");

/// A review of a change of a pod.
fn review(old_object: &str, object: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u",
"kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},
"operation":"UPDATE","namespace":"team-a","userInfo":{{"username":"author"}},
"object":{object},"oldObject":{old_object}}}}}"#
    )
}

/// A pod with as many containers as podgate reads.
fn pod_of_containers(container: impl Fn(usize) -> String) -> String {
    let list = (0..1000).map(container).collect::<Vec<_>>().join(",");
    format!(r#"{{"spec":{{"containers":[{list}],"initContainers":[{list}],"ephemeralContainers":[{list}]}}}}"#)
}

/// As many members of one object as podgate reads, all but the last.
fn members(escape: &str) -> String {
    (1..90_000).map(|index| format!(r#""{escape}{index:05}":"""#)).collect::<Vec<_>>().join(",")
}

/// Bodies that take as much memory as any.
fn costly() -> Vec<String> {
    let bad =
        |index| format!(r#"{{"name":"{index}","image":"a","securityContext":{{"privileged":true,"runAsUser":0}}}}"#);
    let annotated = format!(r#"{{"metadata":{{"annotations":{{{0}}}}},"spec":{{{0}}},{0}}}"#, members("\\n"));
    let image = format!(r#"{{"spec":{{"containers":[{{"name":"a","image":"{}"}}]}}}}"#, "\\n".repeat(4_100_000));
    // Objects in objects, each with just enough keys to double the room for them, and no end, so that it
    // is read again to say what is wrong.
    let levels = (0..57_400).map(|index| format!(r#""{index:04x}":1,"#)).collect::<Vec<_>>().concat();
    let mut broken = format!("{{{levels}\"a\":").repeat(13);
    broken.truncate(8 << 20);
    vec![
        review(&pod_of_containers(|_| "{}".to_owned()), &pod_of_containers(bad)),
        review("{}", &pod_of_containers(|index| format!(r#"{{"name":"{index}"}}"#))),
        review(&annotated, &annotated),
        review("{}", &image),
        broken,
    ]
}

/// Asks as kube-apiserver does, which tries again where the connection was reset. There is always room
/// for a small review.
async fn persist(server: &Binary) {
    until("a small review is answered", async || {
        let reply = server.try_ask(&post("/mutate", REVIEW)).await;
        reply.is_ok_and(|reply| {
            assert_eq!(reply.status, 200, "{reply:?}");
            true
        })
    })
    .await;
}

fn is_over_capacity(reply: &Reply) -> bool {
    reply.status == 503 && reply.header("retry-after") == Some("1")
}

fn assert_within_the_formula(server: &Binary) {
    let (most, peak) = (Limits::default().memory_max(), server.memory("VmHWM"));
    println!("{} MiB at most, {} MiB now, formula {} MiB", peak >> 20, server.memory("VmRSS") >> 20, most >> 20);
    assert!(peak < most, "{peak} bytes in memory, the formula says {most}");
}

/// Nothing is left of clients that have gone: no connection, no request, and none of the budget.
async fn assert_released(server: &Binary) {
    for metric in ["podgate_connections{port=\"webhooks\"}", "podgate_requests_in_flight", "podgate_handshakes"] {
        server.until_metric(metric, 0.0).await;
    }
    let limits = Limits::default();
    let mut held = Vec::new();
    for _ in 0..limits.bodies_bytes / limits.body_bytes {
        held.push(hold(server, limits.body_bytes).await);
    }
    for stream in &mut held {
        send(stream, " ").await;
        assert_eq!(read_reply(stream).await.status, 400, "a body of nothing but spaces, which found room");
    }
}

/// A client that has sent all of a body but its last byte.
async fn hold(server: &Binary, length: usize) -> Tls {
    let mut stream = server.connect().await;
    send(&mut stream, head(length)).await;
    send(&mut stream, " ".repeat(length - 1)).await;
    stream
}

#[tokio::test]
async fn the_costliest_reviews_fit_in_memory() {
    let server = Binary::serve(&[]).await;
    for (path, body) in costly().into_iter().flat_map(|body| [("/mutate", body.clone()), ("/validate", body)]) {
        let request = Arc::new(post(path, &body));
        let mut clients = JoinSet::new();
        for _ in 0..AT_A_TIME {
            let (mut stream, request) = (server.connect().await, Arc::clone(&request));
            clients.spawn(async move {
                stream.write_all(request.as_bytes()).await?;
                stream.flush().await?;
                try_read_reply(&mut stream).await
            });
        }
        persist(&server).await;
        let mut answered = 0;
        while let Some(reply) = clients.join_next().await {
            // On a slow machine some may have waited for their turn until the server's time was up.
            let Ok(reply) = reply.unwrap() else { continue };
            answered += usize::from([200, 400].contains(&reply.status));
            assert!([200, 400, 408].contains(&reply.status) || is_over_capacity(&reply), "{reply:?}");
        }
        assert!(answered > 0, "{path} has room for one of {} bytes", body.len());
        println!("{path} {} bytes: {answered} answered", body.len());
        assert_within_the_formula(&server);
    }
    assert!(server.metric("podgate_rejected_requests_total{reason=\"busy\"}").await > 0.0);
    assert_released(&server).await;
    assert_within_the_formula(&server);
}

/// A connection whose client takes little at a time.
async fn connect_narrow(server: &Binary) -> Tls {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4 << 10).expect("a size");
    server.encrypt(within(socket.connect(server.addr)).await.expect("the port")).await
}

/// Handshakes that stop just before the end of the largest message that TLS reads.
async fn begin_handshake(server: &Binary) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr).await.expect("the port");
    // A ClientHello of 65,535 bytes (RFC 8446, section 4), in records of 16,000 (section 5.1).
    let mut message = vec![1, 0, 0xff, 0xff];
    message.resize(64_000, 0);
    for piece in message.chunks(16_000) {
        let record = [&[22, 3, 1], &16_000_u16.to_be_bytes()[..], piece].concat();
        // The server may have given the place to another.
        let _ = stream.write_all(&record).await;
    }
    stream
}

/// All places taken by clients that do the worst there is: half a head, half a body, answers that
/// nobody takes, handshakes without end. None of that depends on who is quick: what the server
/// closes in time, it has had in memory before.
#[tokio::test]
async fn slow_clients_on_all_places_fit_in_memory() {
    let server = Arc::new(Binary::serve(&[]).await);
    let limits = Limits::default();
    let mut known = server.connect().await;
    let mut idle = Vec::new();
    for _ in 1..limits.connections {
        let mut stream = connect_narrow(&server).await;
        assert_eq!(ask(&mut stream, post("/mutate", REVIEW)).await.status, 200);
        idle.push(stream);
        if idle.len() % 100 == 0 {
            assert_eq!(ask(&mut known, post("/mutate", REVIEW)).await.status, 200);
        }
    }
    server
        .until_metric(
            "podgate_connections{port=\"webhooks\"}",
            f64::from(u32::try_from(limits.connections).expect("some hundreds")),
        )
        .await;

    let mut strangers = JoinSet::new();
    let denied = Arc::new(post("/validate", &review("{}", &pod_of_containers(|_| r#"{"image":"a"}"#.to_owned()))));
    for (index, mut stream) in idle.into_iter().enumerate() {
        let denied = Arc::clone(&denied);
        strangers.spawn(async move {
            // Whenever writing fails, the server has had enough.
            if index < SLOW_READERS {
                while stream.write_all(denied.as_bytes()).await.is_ok() {}
                return stream;
            }
            let half = match index % 2 {
                0 => format!("POST /mutate HTTP/1.1\r\nx: {}", "x".repeat(16_000)).into_bytes(),
                _ => (head(8 << 20) + &" ".repeat(100_000)).into_bytes(),
            };
            let _ = stream.write_all(&half).await;
            let _ = stream.flush().await;
            stream
        });
    }
    let mut handshakes = JoinSet::new();
    for _ in 0..2 * limits.handshakes {
        let server = Arc::clone(&server);
        handshakes.spawn(async move { begin_handshake(&server).await });
    }
    for _ in 0..10 {
        assert_eq!(ask(&mut known, post("/mutate", REVIEW)).await.status, 200);
        persist(&server).await;
    }
    assert_within_the_formula(&server);
    // Each of these ways of being slow was met.
    for metric in [
        "podgate_handshake_failures_total{reason=\"evicted\"}",
        "podgate_rejected_requests_total{reason=\"head_timeout\"}",
        "podgate_rejected_requests_total{reason=\"timeout\"}",
    ] {
        until(metric, async || server.metric(metric).await > 0.0).await;
    }
    persist(&server).await;
    drop(known);
    strangers.shutdown().await;
    handshakes.shutdown().await;
    assert_released(&server).await;
    assert_within_the_formula(&server);
}

/// What a hostile client of HTTP/2 does, and whether the server has to end it.
struct Attack {
    name: &'static str,
    /// Settings that it begins with.
    settings: Vec<u8>,
    /// What it sends, time after time, on streams of its own.
    frames: fn(u32) -> Vec<u8>,
    times: u32,
    is_ended: bool,
}

/// A client's streams (RFC 9113, section 5.1.1).
fn stream_id(time: u32) -> u32 {
    2 * time + 1
}

fn attacks() -> Vec<Attack> {
    let none = Vec::new;
    let blocked = || setting(INITIAL_WINDOW_SIZE, 0);
    vec![
        Attack {
            name: "many streams, each with as much of a body as it may send",
            settings: none(),
            frames: |time| {
                let headers = frame(HEADERS, END_HEADERS, stream_id(time), &request("POST", "/mutate"));
                let data = frame(DATA, 0, stream_id(time), &[b' '; 4_000]);
                [headers, data].concat()
            },
            times: 60,
            is_ended: false,
        },
        Attack {
            name: "more streams than it may have",
            settings: none(),
            frames: |time| frame(HEADERS, END_HEADERS, stream_id(time), &request("POST", "/mutate")),
            times: 20_000,
            is_ended: true,
        },
        Attack {
            name: "answers that it has no room for",
            settings: blocked(),
            frames: |time| frame(HEADERS, END_HEADERS | END_STREAM, stream_id(time), &request("GET", "/healthz")),
            times: 20_000,
            is_ended: true,
        },
        Attack {
            name: "rapid resets",
            settings: none(),
            frames: |time| {
                let headers = frame(HEADERS, END_HEADERS, stream_id(time), &request("POST", "/mutate"));
                [headers, frame(RST_STREAM, 0, stream_id(time), &[0, 0, 0, 8])].concat()
            },
            times: 20_000,
            is_ended: true,
        },
        Attack {
            name: "headers without an end",
            settings: none(),
            frames: |time| {
                let (kind, fields) = if time == 0 {
                    (HEADERS, request("POST", "/mutate"))
                } else {
                    (CONTINUATION, field("x", "x").repeat(500))
                };
                frame(kind, 0, 1, &fields)
            },
            times: 20_000,
            is_ended: true,
        },
        Attack {
            name: "large lists of headers",
            settings: none(),
            frames: |time| {
                let fields = [request("POST", "/mutate"), field("x", &"x".repeat(100)).repeat(140)].concat();
                frame(HEADERS, END_HEADERS | END_STREAM, stream_id(time), &fields)
            },
            times: 60,
            is_ended: false,
        },
        Attack {
            name: "pings",
            settings: none(),
            frames: |_| frame(PING, 0, 0, &[0; 8]).repeat(1000),
            times: 20_000,
            is_ended: true,
        },
        Attack {
            name: "settings",
            settings: none(),
            frames: |_| frame(SETTINGS, 0, 0, &[]).repeat(1000),
            times: 20_000,
            is_ended: true,
        },
    ]
}

#[tokio::test]
async fn floods_of_http2_fit_in_memory() {
    let server = Arc::new(Binary::serve(&[]).await);
    let mut known = server.connect().await;
    for attack in attacks() {
        let mut clients = JoinSet::new();
        for _ in 0..Limits::default().http2_connections {
            let stream = start(server.connect_http2().await, &attack.settings).await;
            clients.spawn(async move {
                let mut stream = stream;
                let is_ended = flood(&mut stream, attack.times, attack.frames).await;
                (stream, is_ended)
            });
        }
        for _ in 0..10 {
            assert_eq!(ask(&mut known, post("/mutate", REVIEW)).await.status, 200);
            assert_eq!(ask(&mut server.connect().await, post("/mutate", REVIEW)).await.status, 200);
        }
        let clients = clients.join_all().await;
        println!("{}: {:?}", attack.name, clients.iter().map(|(_, is_ended)| *is_ended).collect::<Vec<_>>());
        assert!(!attack.is_ended || clients.iter().all(|(_, is_ended)| *is_ended), "{} went on", attack.name);
        assert_within_the_formula(&server);
    }
    drop(known);
    assert_released(&server).await;
    assert_within_the_formula(&server);
}
