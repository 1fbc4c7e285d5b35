"""jupyter_kernel_test's tests of a kernel, which its users fill with samples of their language."""

from __future__ import annotations

import jupyter_kernel_test

_RICH = """
class Rich:
    def _repr_html_(self):
        return "<b>rich</b>"

    def _repr_png_(self):
        return b"\\x89PNG"

"""


class TestSessions(jupyter_kernel_test.KernelTests):
    """Theirs."""

    kernel_name = "python3"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    code_generate_error = "raise ValueError('no')"
    code_execute_result = (
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
        {"code": "None or 'text'", "result": "'text'"},
        {"code": f"{_RICH}Rich()", "mime": "text/html", "result": "<b>rich</b>"},
    )
    code_display_data = ({"code": f"{_RICH}display(Rich())", "mime": "text/html"},)
