# syntax=docker/dockerfile:1
# Two stages; the image is nothing but the binary. Multi-arch: `docker buildx build --platform
# linux/amd64,linux/arm64 .` builds each natively, for the target is the builder's own.
FROM rust:1.95-bookworm AS builder
ARG TARGETARCH
WORKDIR /src
# Only what .dockerignore lets in.
COPY . .
# Static, so that it runs on scratch. The target is named because static linking is for the binary
# alone, not for the compiler's plugins.
ENV RUSTFLAGS="-C target-feature=+crt-static"
# Dependencies are downloaded and compiled once for each architecture, not for each change.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,id=podgate-target-$TARGETARCH,target=/src/target \
    target="$(rustc --print host-tuple)" \
    && cargo build --release --locked --bin podgate --target "$target" \
    && cp "target/$target/release/podgate" /podgate

FROM scratch
# The memory of a large review goes back to the system when it is answered (glibc, "Memory Allocation
# Tunables"): without this, each of glibc's arenas keeps some megabytes for the next one.
ENV GLIBC_TUNABLES=glibc.malloc.mmap_threshold=32768:glibc.malloc.arena_max=2
COPY --from=builder /podgate /podgate
# "nonroot", by number: scratch has no /etc/passwd.
USER 65532:65532
EXPOSE 8443 9090
ENTRYPOINT ["/podgate"]
CMD ["serve"]
