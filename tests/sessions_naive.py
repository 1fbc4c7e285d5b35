"""Sessions without any wall: what an attack, and a test of ours, is held against.

Same contract, plain processes of one user in one namespace, forked by one another. An attack that
does not work here says nothing about a wall; a law that does not hold here is a wrong law.
Only as much as the tests ask.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import json
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
import uuid
from concurrent import futures
from pathlib import Path
from typing import Any, NoReturn

_TERMINAL = (signal.SIGUSR1, signal.SIGTERM, signal.SIGIO)
_SIZE = struct.Struct("!I")


def _send(line: socket.socket, message: Any, *descriptors: int) -> None:
    data = json.dumps(message).encode()
    socket.send_fds(line, [_SIZE.pack(len(data))], descriptors)
    line.sendall(data)


def _receive(line: socket.socket) -> tuple[Any, list[int]]:
    head, descriptors, _, _ = socket.recv_fds(line, _SIZE.size, 4)
    if len(head) < _SIZE.size:
        raise EOFError
    data = b""
    while len(data) < _SIZE.unpack(head)[0]:
        piece = line.recv(_SIZE.unpack(head)[0] - len(data))
        if not piece:
            raise EOFError
        data += piece
    return json.loads(data), list(descriptors)


def _run(code: str, space: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"end": "COMPLETED", "value": None, "error": None, "code": 0}
    try:
        tree = ast.parse(code, "<cell>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
            answer["value"] = None if value is None else repr(value)
    except SystemExit as error:
        answer |= {"end": "EXITED", "code": error.code if isinstance(error.code, int) else 1}
    except KeyboardInterrupt:
        answer["end"] = "INTERRUPTED"
    except BaseException as error:  # noqa: BLE001  # the cell's own
        answer |= {"end": "RAISED", "error": [type(error).__name__, str(error)]}
        traceback.print_exc()
    return answer


def _live(line: socket.socket, folder: str) -> NoReturn:
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    os.chdir(folder)
    random.seed(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while True:
            try:
                request, descriptors = _receive(line)
                if request["do"] == "cell":
                    for target, source in zip((1, 2), descriptors, strict=True):
                        os.dup2(source, target)
                        os.close(source)
                    answer = _run(request["code"], main.__dict__)
                    sys.stdout.flush()
                    sys.stderr.flush()
                    _send(line, answer)
                else:
                    line = _copy(line, request, descriptors[0])
            except KeyboardInterrupt:
                continue
    finally:
        os._exit(0)


def _copy(line: socket.socket, request: Any, descriptor: int) -> socket.socket:
    """Forks; returns the line that this process goes on with."""
    state = random.getstate()
    pid = os.fork()
    if pid:
        os.close(descriptor)
        _send(line, pid)
        return line
    if not request["reseed"]:
        random.setstate(state)
    line.close()
    os.chdir(request["folder"])
    return socket.socket(fileno=descriptor)


def _nursery(control: socket.socket) -> NoReturn:
    """Forks first processes of sessions; reaps nothing, for the kernel does."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in _TERMINAL:
        signal.signal(number, signal.SIG_IGN)
    while True:
        try:
            request, [descriptor] = _receive(control)
        except (EOFError, ValueError):
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            control.close()
            for number in (*_TERMINAL, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            _live(socket.socket(fileno=descriptor), request["folder"])
        os.close(descriptor)
        _send(control, pid)


class Living:
    """A process with a folder."""

    def __init__(self, line: socket.socket, pid: int, folder: str) -> None:
        self.line, self.pid, self.folder = line, pid, folder

    def ask(self, message: Any, *descriptors: int, wall_s: float = 60.0) -> Any:
        """None where it died."""
        with contextlib.suppress(OSError, EOFError):
            _send(self.line, message, *descriptors)
            if not select.select([self.line], [], [], wall_s)[0]:
                os.kill(self.pid, signal.SIGINT)
                if not select.select([self.line], [], [], 1.0)[0]:
                    os.kill(self.pid, signal.SIGKILL)
            return _receive(self.line)[0]
        return None

    def copy(self, *, reseed: bool = False) -> Living:
        folder = tempfile.mkdtemp(dir=Path(self.folder).parent)
        shutil.copytree(self.folder, folder, dirs_exist_ok=True, symlinks=True)
        ours, theirs = socket.socketpair()
        request = {"do": "fork", "folder": folder, "reseed": reseed}
        pid = self.ask(request, theirs.fileno())
        theirs.close()
        assert pid, "it died"
        return Living(ours, pid, folder)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.line.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _service(control: socket.socket, top: str) -> Any:  # noqa: C901
    from assay.api.session.v1 import session_pb2 as pb
    from assay.api.session.v1 import session_pb2_grpc

    class Service(session_pb2_grpc.SessionServiceServicer):
        def __init__(self) -> None:
            self.live: dict[str, Living] = {}
            self.points: dict[str, Living] = {}
            self.numbers: dict[str, int] = {}
            self.lock = threading.Lock()

        def _named(self, living: Living) -> Any:
            name = uuid.uuid4().hex
            self.live[name], self.numbers[name] = living, 0
            return pb.Session(id=name, replica="naive")

        def Create(self, request: Any, context: Any) -> Any:
            made = []
            for _ in range(request.count or 1):
                folder = tempfile.mkdtemp(dir=top)
                for file in request.files:
                    path = Path(folder) / file.path
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(file.content)
                ours, theirs = socket.socketpair()
                with self.lock:
                    _send(control, {"folder": folder}, theirs.fileno())
                    theirs.close()
                    pid, _ = _receive(control)
                    made.append(self._named(Living(ours, pid, folder)))
            return pb.CreateResponse(sessions=made)

        def Execute(self, request: Any, context: Any) -> Any:
            living = self.live[request.session_id]
            self.numbers[request.session_id] += 1
            wall_s = request.wall_time.ToNanoseconds() / 1e9 or 10.0
            began_s = time.monotonic()
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                message = {"do": "cell", "code": request.code}
                answer = living.ask(message, out.fileno(), err.fileno(), wall_s=wall_s)
                texts = []
                for file in (out, err):
                    file.seek(0)
                    texts.append(file.read(1 << 20))
            result = pb.CellResult(number=self.numbers[request.session_id])
            late = time.monotonic() - began_s > wall_s
            if answer is None:
                result.end = pb.CELL_END_WALL_TIME_LIMIT if late else pb.CELL_END_DIED
                result.session_over = True
            else:
                result.end = pb.CellEnd.Value("CELL_END_" + answer["end"])
                if answer["end"] == "INTERRUPTED" and late:
                    result.end = pb.CELL_END_WALL_TIME_LIMIT
                result.exit_code = answer["code"]
                if answer["value"] is not None:
                    result.value.data["text/plain"] = answer["value"].encode()
                if answer["error"] is not None:
                    result.error.name, result.error.message = answer["error"]
            for stream, text in zip((1, 2), texts, strict=True):
                if text:
                    yield pb.ExecuteResponse(output=pb.OutputChunk(stream=stream, data=text))
            result.stdout.data, result.stderr.data = texts
            yield pb.ExecuteResponse(result=result)

        def Checkpoint(self, request: Any, context: Any) -> Any:
            name = uuid.uuid4().hex
            self.points[name] = self.live[request.session_id].copy()
            self.numbers[name] = self.numbers[request.session_id]
            return pb.CheckpointResponse(checkpoint_id=name)

        def Rollback(self, request: Any, context: Any) -> Any:
            self.live[request.session_id].kill()
            self.live[request.session_id] = self.points[request.checkpoint_id].copy()
            self.numbers[request.session_id] = self.numbers[request.checkpoint_id]
            return pb.RollbackResponse()

        def Fork(self, request: Any, context: Any) -> Any:
            source = (
                self.points[request.checkpoint_id]
                if request.checkpoint_id
                else self.live[request.session_id]
            )
            copies = [source.copy(reseed=request.reseed) for _ in range(request.count or 1)]
            response = pb.ForkResponse(sessions=[self._named(copy) for copy in copies])
            for made in response.sessions:
                start = request.checkpoint_id or request.session_id
                self.numbers[made.id] = self.numbers[start]
            return response

        def PutFiles(self, request: Any, context: Any) -> Any:
            for file in request.files:
                path = Path(self.live[request.session_id].folder) / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.content)
            return pb.PutFilesResponse()

        def GetFiles(self, request: Any, context: Any) -> Any:
            top = Path(self.live[request.session_id].folder)
            response = pb.GetFilesResponse()
            paths = request.paths or sorted(
                str(p.relative_to(top)) for p in top.rglob("*") if p.is_file()
            )
            for path in paths:
                if (top / path).is_file():
                    content = (top / path).read_bytes() if request.paths else b""
                    response.files.add(path=path, content=content)
            return response

        def DropCheckpoints(self, request: Any, context: Any) -> Any:
            for name in request.checkpoint_ids:
                if name in self.points:
                    self.points.pop(name).kill()
            return pb.DropCheckpointsResponse()

        def Close(self, request: Any, context: Any) -> Any:
            for name in request.session_ids:
                if name in self.live:
                    self.live.pop(name).kill()
            return pb.CloseResponse()

        def DescribeSessions(self, request: Any, context: Any) -> Any:
            return pb.DescribeSessionsResponse(languages=["python"], open=len(self.live))

    return Service()


def _raise_loopback() -> None:
    with socket.socket() as probe:
        fcntl.ioctl(probe, 0x8914, struct.pack("16sH14x", b"lo", 0x49))  # SIOCSIFFLAGS, up


def main(top: str) -> None:
    if os.getpid() != 1:
        raise SystemExit("it mounts and listens: only in namespaces of its own, by `naive`")
    # A checkout beneath /tmp must stay in sight.
    for place in ("/dev/shm",) if __file__.startswith("/tmp/") else ("/dev/shm", "/tmp"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
    _raise_loopback()
    control, theirs = socket.socketpair()
    if os.fork() == 0:
        control.close()
        _nursery(theirs)
    theirs.close()
    import grpc

    from assay.api.session.v1 import session_pb2_grpc

    server = grpc.server(futures.ThreadPoolExecutor(64))
    session_pb2_grpc.add_SessionServiceServicer_to_server(_service(control, top), server)
    server.add_insecure_port(f"unix:{top}/server.sock")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1])
