//! HTTP/2 frame by frame (RFC 9113), as no library would send it.

use tokio::io::AsyncWriteExt;

use super::{Tls, within};

/// Kinds of frames (RFC 9113, section 6).
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const CONTINUATION: u8 = 9;

/// Flags of HEADERS and DATA.
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// A setting: how much a stream's answer may be ahead of what the client takes (RFC 9113, section 6.5.2).
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

/// What a client sends before any frame (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A setting (RFC 9113, section 6.5.1).
pub(crate) fn setting(identifier: u16, value: u32) -> Vec<u8> {
    [&identifier.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// A field with a name of its own, neither indexed nor compressed (RFC 7541, section 6.2.2).
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        let length = u8::try_from(text.len()).ok().filter(|&length| length < 127).expect("a short text");
        field.push(length);
        field.extend(text.as_bytes());
    }
    field
}

/// The fields of a request with a JSON body.
pub(crate) fn request(method: &str, path: &str) -> Vec<u8> {
    [
        field(":method", method),
        field(":scheme", "https"),
        field(":authority", "localhost"),
        field(":path", path),
        field("content-type", "application/json"),
    ]
    .concat()
}

/// A connection that has spoken the preface and these settings.
pub(crate) async fn start(mut stream: Tls, settings: &[u8]) -> Tls {
    let hello = [PREFACE, &frame(SETTINGS, 0, 0, settings)].concat();
    within(async {
        stream.write_all(&hello).await.expect("the server reads");
        stream.flush().await.expect("the server reads");
    })
    .await;
    stream
}

/// Sends without reading until the server has enough of it, or `times` times: whether it had.
pub(crate) async fn flood(stream: &mut Tls, times: u32, mut frames: impl FnMut(u32) -> Vec<u8>) -> bool {
    for time in 0..times {
        let frames = frames(time);
        let sent = within(async {
            stream.write_all(&frames).await?;
            stream.flush().await
        });
        if sent.await.is_err() {
            return true;
        }
    }
    false
}
