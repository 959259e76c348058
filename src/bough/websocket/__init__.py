"""Websockets (RFC 6455) over sockets that do not block, for both ends of a session.

frames          messages as frames, and back
handshake       from an HTTP request to a websocket
kernel_pipe     bytes that go from one socket to another without being copied into this process
peer            one end of a websocket: reads messages, and keeps what is still to be sent
pending_writes  writes to streams that may not take everything at once
relay           event loops that forward data and hold little of it, however slow a reader is
channels        several streams, an exit code and the size of a terminal on one websocket
"""
