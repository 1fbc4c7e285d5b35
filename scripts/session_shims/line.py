"""A session by the bare wire: gRPC's stubs and nothing else of this project."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

import grpc
from google.protobuf.duration_pb2 import Duration

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2 as pb
from assay.api.session.v1 import session_pb2_grpc

TARGET = os.environ.get("ASSAY_PEERS_TARGET", "127.0.0.1:50052")
_CALL_S = 60.0
_CELL_S = 600.0  # its own limits end it earlier
_OPTIONS = [("grpc.max_receive_message_length", 64 << 20)]

Watch = Callable[[pb.ExecuteResponse], None]


class Line:
    """One session; cells of several threads wait for one another."""

    def __init__(
        self, language: str, *, limits: pb.SessionLimits | None = None, target: str = ""
    ) -> None:
        self._channel = grpc.insecure_channel(target or TARGET, options=_OPTIONS)
        self._stub = session_pb2_grpc.SessionServiceStub(self._channel)
        request = pb.CreateRequest(language=language, limits=limits)
        [opened] = self._stub.Create(request, timeout=_CALL_S).sessions
        self.id = opened.id
        self._metadata = (("assay-replica", opened.replica),)
        self._one = threading.Lock()
        self.closed = False

    def run(
        self, code: str, *, wall_s: float | None = None, watch: Watch | None = None
    ) -> pb.CellResult:
        """Runs a cell; `watch` sees what it writes and shows."""
        request = pb.ExecuteRequest(session_id=self.id, code=code)
        if wall_s is not None:
            request.wall_time.CopyFrom(Duration(nanos=int(wall_s % 1 * 1e9), seconds=int(wall_s)))
        result = None
        with self._one:
            for event in self._stub.Execute(request, timeout=_CELL_S, metadata=self._metadata):
                if event.HasField("result"):
                    result = event.result
                elif watch:
                    watch(event)
        if result is None:
            raise RuntimeError("a stream without a result")
        return result

    def put(self, files: Mapping[str, bytes]) -> None:
        """Writes files of the working directory."""
        sources = [
            execution_pb2.SourceFile(path=path, content=content) for path, content in files.items()
        ]
        request = pb.PutFilesRequest(session_id=self.id, files=sources)
        with self._one:
            self._stub.PutFiles(request, timeout=_CALL_S, metadata=self._metadata)

    def get(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Reads those that are there."""
        request = pb.GetFilesRequest(session_id=self.id, paths=list(paths))
        with self._one:
            answer = self._stub.GetFiles(request, timeout=_CALL_S, metadata=self._metadata)
        return {file.path: file.content for file in answer.files}

    def close(self) -> None:
        """Ends the session."""
        if not self.closed:
            self.closed = True
            request = pb.CloseRequest(session_ids=[self.id])
            self._stub.Close(request, timeout=_CALL_S, metadata=self._metadata)
            self._channel.close()

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
