//! A client as small as can be, so that the cores are the server's.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A TLS connection that speaks HTTP/1.1.
pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Trusts one authority, resumes no session, as kube-apiserver does not, and offers the given protocols.
pub(crate) fn trusting(
    authority: &CertificateDer<'static>,
    protocols: &[&[u8]],
    group: Option<&'static dyn SupportedKxGroup>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).expect("an authority");
    let every = aws_lc_rs::default_provider();
    let groups = group.map_or(every.kx_groups.clone(), |group| vec![group]);
    let mut config = ClientConfig::builder_with_provider(Arc::new(CryptoProvider { kx_groups: groups, ..every }))
        .with_safe_default_protocol_versions()
        .expect("the provider has every version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config)
}

/// The name that the certificate has.
pub(crate) fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("a name")
}

/// A connection whose handshake is done.
pub(crate) fn connect(addr: SocketAddr, tls: &Arc<ClientConfig>) -> io::Result<Stream> {
    let stream = TcpStream::connect(addr)?;
    stream.set_nodelay(true)?;
    let session = ClientConnection::new(Arc::clone(tls), localhost()).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

/// A request with the head that kube-apiserver writes.
pub(crate) fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path}?timeout=10s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\n\
         Content-Length: {}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n\
         Accept-Encoding: gzip\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Sends a request, reads its answer to the end, and returns the status.
pub(crate) fn exchange(stream: &mut Stream, request: &[u8], buffer: &mut [u8]) -> io::Result<u16> {
    stream.write_all(request)?;
    let mut read = 0;
    loop {
        let more = stream.read(&mut buffer[read..])?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read += more;
        let head_end = buffer[..read].windows(4).position(|window| window == b"\r\n\r\n");
        let Some(head_end) = head_end else { continue };
        let head = std::str::from_utf8(&buffer[..head_end]).map_err(io::Error::other)?;
        let field = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
            line.and_then(|line| line[name.len()..].trim().parse::<usize>().ok())
        };
        if read >= head_end + 4 + field("content-length:").expect("the answer has a length") {
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
            return Ok(status.expect("an answer begins with its status"));
        }
    }
}

/// An answer of 200, or the end of the benchmark.
pub(crate) fn must_exchange(stream: &mut Stream, request: &[u8], buffer: &mut [u8]) {
    assert_eq!(exchange(stream, request, buffer).expect("the server answers"), 200);
}
