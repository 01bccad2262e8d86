//! Answers of HTTP/1.1, read byte for byte.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::within;

/// One answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The message of a refusal, which is a whole metav1.Status.
    pub(crate) fn refusal(&self, status: u16, reason: &str) -> String {
        let json = self.json();
        let message = json["message"].as_str().expect("a message").to_owned();
        let expected = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": status
        });
        assert_eq!((self.status, json), (status, expected));
        message
    }
}

/// Reads one answer, which has to come.
pub(crate) async fn read_reply(stream: &mut (impl AsyncRead + Unpin)) -> Reply {
    try_read_reply(stream).await.expect("an answer")
}

/// Reads one answer, unless the connection fails before its end.
pub(crate) async fn try_read_reply(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Reply> {
    within(async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).expect("text");
        let status = head[9..12].parse().expect("a status");
        let mut reply = Reply { status, head, body: Vec::new() };
        let length = reply.header("content-length").expect("a length").parse().expect("a number");
        reply.body = vec![0; length];
        stream.read_exact(&mut reply.body).await?;
        Ok(reply)
    })
    .await
}

/// Waits for the server to close the connection, without another answer.
pub(crate) async fn is_closed(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    let mut rest = Vec::new();
    // However it ends, it ends.
    let _ = within(stream.read_to_end(&mut rest)).await;
    rest.is_empty()
}
