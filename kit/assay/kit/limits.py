"""Limits of the wire, equal on both ends, and the gRPC options that enforce them."""

from __future__ import annotations

MAX_MESSAGE_BYTES = 64 * 2**20
MAX_BATCH_ITEMS = 1024
MAX_ITEM_BYTES = 4 * 2**20
MAX_ITEM_ID_BYTES = 256
DEFAULT_ITEM_TIMEOUT_S = 10.0
MAX_ITEM_TIMEOUT_S = 600.0
MAX_PENDING_CALLS = 65536
# Room for what other programs put into metadata; our own statuses stay below 8 KiB.
_METADATA_LIMITS: list[tuple[str, int | str]] = [
    ("grpc.max_metadata_size", 2**15),
    ("grpc.absolute_max_metadata_size", 2**16),
]


def server_options() -> list[tuple[str, int | str]]:
    """Options of every Assay server. A port in use is an error, not a share.

    A connection is renewed every five minutes, without harm to its calls, so that a client of
    `dns:///` learns of new replicas.
    """
    return [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.so_reuseport", 0),
        # gRPC would drop calls at random above 1,000 that wait, without a reason (CANCELLED) and
        # before any interceptor; the gate refuses with one, which clients understand.
        ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
        ("grpc.max_connection_age_ms", 300_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        *_METADATA_LIMITS,
    ]


def channel_options() -> list[tuple[str, int | str]]:
    """Options of every Assay client.

    The client itself retries, inside the caller's deadline. A server that comes back is found
    within seconds (gRPC would wait for up to two minutes). Channels do not share connections.
    """
    return [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.enable_retries", 0),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 5_000),
        ("grpc.use_local_subchannel_pool", 1),
        *_METADATA_LIMITS,
    ]
