//! One connection that is past its handshake: HTTP on it, and its end.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use tower::Service as _;

use super::activity::{Activity, Exchange, Order, Overdue, Protocol};
use super::clients::ClientNames;
use super::limits::{HTTP2_STREAMS, Limits};
use super::stream::Watched;

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// Both sides were done.
    Closed,
    /// The client broke off, or did not speak HTTP.
    Failed(hyper::Error),
    /// The client kept the server waiting.
    Overdue(Overdue),
    /// The server needed the place, or is stopping.
    GaveUp,
}

/// Serves HTTP on `stream` until either side is done with it. Each request carries the names that its
/// `client` has proved.
pub(super) async fn serve<S>(
    stream: S,
    client: Option<ClientNames>,
    activity: Arc<Activity>,
    router: Router,
    limits: &Limits,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
    let service = {
        let activity = Arc::clone(&activity);
        service_fn(move |mut request: Request<Incoming>| {
            if let Some(client) = &client {
                request.extensions_mut().insert(client.clone());
            }
            answer(request, activity.begin(), Arc::clone(&activity), router.clone())
        })
    };
    match activity.protocol() {
        Protocol::Http2 => watch(http2().serve_connection(stream, service), &activity, limits).await,
        Protocol::Handshake | Protocol::Http1 => {
            watch(http1().serve_connection(stream, service), &activity, limits).await
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    mut exchange: Exchange,
    activity: Arc<Activity>,
    mut router: Router,
) -> Result<Response<Tracked>, Infallible> {
    let mut response = router.call(request).await?;
    // HTTP/2 has a frame for this, which hyper sends.
    if activity.protocol() == Protocol::Http1 && activity.order() > Order::Serve {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    exchange.answered();
    Ok(response.map(|body| Tracked { body, _exchange: exchange }))
}

fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // Its timeout for heads also closes idle connections; [`Activity`] tells the two apart.
    // More than a TLS record (RFC 8446, section 5.1) is never there to be read at once.
    builder.header_read_timeout(None).max_header_size(16 << 10).max_buf_size(16 << 10);
    builder
}

/// HTTP/2 within 1 MiB a connection, beside the bodies of its streams. Against resets without end, frames without content and headers
/// that go on and on, hyper and h2 have limits of their own.
fn http2() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_header_list_size(8 << 10)
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(256 << 10)
        .max_send_buf_size(16 << 10);
    builder
}

/// Drives a connection, passes the server's orders on to it, and ends it when it is overdue.
async fn watch<C>(connection: C, activity: &Activity, limits: &Limits) -> End
where
    C: GracefulConnection<Error = hyper::Error>,
{
    let mut connection = pin!(connection);
    let mut alarm = pin!(sleep_until(Instant::now() + limits.idle));
    let mut obeyed = Order::Serve;
    std::future::poll_fn(|context| {
        loop {
            if let Poll::Ready(result) = connection.as_mut().poll(context) {
                return Poll::Ready(result.map_or_else(End::Failed, |()| End::Closed));
            }
            let (order, due) = activity.consult(limits, context.waker());
            if order == Order::GiveUp {
                close(connection.as_mut(), context);
                return Poll::Ready(End::GaveUp);
            }
            if order > obeyed {
                obeyed = order;
                // On HTTP/1.1 this closes an idle connection, which a draining server still serves.
                if order == Order::Close || activity.protocol() == Protocol::Http2 {
                    connection.as_mut().graceful_shutdown();
                    continue;
                }
            }
            // The alarm is set again only where it would ring too late, or rang too early.
            if due.at < alarm.deadline() {
                alarm.as_mut().reset(due.at);
            }
            ready!(alarm.as_mut().poll(context));
            if due.at <= Instant::now() {
                if due.of == Overdue::Idle && order < Order::Close {
                    activity.obey(Order::Close);
                    continue;
                }
                close(connection.as_mut(), context);
                return Poll::Ready(End::Overdue(due.of));
            }
            alarm.as_mut().reset(due.at);
        }
    })
    .await
}

/// Says goodbye as far as that takes no waiting.
fn close<C: GracefulConnection>(mut connection: Pin<&mut C>, context: &mut Context<'_>) {
    connection.as_mut().graceful_shutdown();
    // Whatever comes of it, the connection is dropped next.
    let _ = connection.poll(context);
}

/// The body of an answer, which keeps its request in flight until it has been sent.
#[derive(Debug)]
struct Tracked {
    body: Body,
    _exchange: Exchange,
}

impl hyper::body::Body for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
