//! What is counted.

use crate::support::{Running, ask, post};

/// Every metric that is there from the start.
const FROM_THE_START: [&str; 15] = [
    "podgate_requests_total",
    "podgate_request_duration_seconds",
    "podgate_requests_in_flight",
    "podgate_connections",
    "podgate_connections_total",
    "podgate_connections_evicted_total",
    "podgate_handshakes",
    "podgate_handshake_failures_total",
    "podgate_certificate_expiry_timestamp_seconds",
    "podgate_last_reload_successful",
    "podgate_last_reload_success_timestamp_seconds",
    "podgate_build_info",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
];

#[tokio::test]
async fn every_metric_is_described() {
    let server = Running::start(|_| {}).await;
    let text = server.metrics().await;
    for name in FROM_THE_START {
        assert!(text.contains(&format!("# HELP {name} ")), "{name} in {text}");
        assert!(text.contains(&format!("# TYPE {name} ")), "{name} in {text}");
    }
    let expires = server.certificate.expires().unix_timestamp();
    assert!(text.contains(&format!("podgate_certificate_expiry_timestamp_seconds {expires}\n")));
    assert!(text.contains(concat!("podgate_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1\n")));
}

#[tokio::test]
async fn requests_are_counted_by_what_became_of_them() {
    let server = Running::start(|_| {}).await;
    let mut stream = server.connect().await;
    for (path, body) in [("/mutate", "{}"), ("/mutate", "{}"), ("/validate", "deny"), ("/mutate", "deny"), ("/no", "")]
    {
        ask(&mut stream, post(path, body)).await;
    }
    let expected = [
        ("podgate_requests_total{operation=\"CREATE\",resource=\"pods\",verdict=\"allowed\",webhook=\"mutate\"}", 2.0),
        ("podgate_requests_total{operation=\"CREATE\",resource=\"pods\",verdict=\"denied\",webhook=\"mutate\"}", 1.0),
        ("podgate_requests_total{operation=\"CREATE\",resource=\"pods\",verdict=\"denied\",webhook=\"validate\"}", 1.0),
        ("podgate_request_duration_seconds_count{webhook=\"mutate\"}", 3.0),
        ("podgate_request_duration_seconds_count{webhook=\"validate\"}", 1.0),
        ("podgate_violations_total{action=\"deny\",policy=\"imageTag\"}", 2.0),
        ("podgate_violations_total{action=\"warn\",policy=\"hostPath\"}", 2.0),
        ("podgate_rejected_requests_total{reason=\"not_found\"}", 1.0),
        ("podgate_connections{port=\"webhooks\"}", 1.0),
        ("podgate_connections_total{port=\"webhooks\"}", 1.0),
        ("podgate_requests_in_flight", 0.0),
    ];
    for (metric, value) in expected {
        let found = server.metric(metric).await;
        assert!((found - value).abs() < 0.1, "{metric} is {found}");
    }
}
