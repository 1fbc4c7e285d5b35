# ruff: noqa: RUF001 - look-alike signs are what some cases are about
"""Notations that the maths reader knows, class by class, beside what each must not take them for.

All cases are of this project. A pair of `SAME` holds in both directions; of `DIFFERENT` the second
is an answer to the first.
"""

from __future__ import annotations

import time

import pytest

from assay.math import compare, grade, read

SAME: dict[str, list[tuple[str, str]]] = {
    "upright letters in numbers": [
        ("0x1F", r"0\text{x}1F"), ("0x1F", r"\texttt{0x1F}"), ("0b101", r"\text{0b101}"),
        (r"7 \times 10^{8}", r"7\mathrm{e}{8}"), (r"8.36 \times 10^{-3}", r"8.36\text{e}-3"),
    ],
    "words around a day, a time, a value": [
        ("Wednesday", r"\text{It is a Wednesday}"), ("Friday", "on Friday"),
        ("8:45 pm", "20:45 hours"), ("58", r"\text{The constant must be } 58"),
        (r"25\pi", r"\text{The integral evaluates to } 25\pi"),
        (r"\frac72", r"\text{The series converges to } 3.5"),
        (r"9\sqrt{3}", r"\text{The expression simplifies to } 9\sqrt{3}"),
    ],
    "scripts in either order": [
        ("v_0^2", "v^2_0"), ("x_1'", "x'_1"), ("x_1'", r"x^{\prime}_1"),
        (r"x_{1}^{\prime}", "x_1'"), (r"M_\odot", r"M_{\odot}"), (r"3M_\odot", r"3 M_{\odot}"),
        (r"a\oplus b", r"a \oplus b"), (r"\mathrm{Re}_1", "Re_1"), ("k_B T", r"k_{\mathrm{B}}T"),
        ("x_{1,2}", "x_{1, 2}"), (r"v_{\max}^2", r"v^2_{\text{max}}"),
        (r"\frac{m v_0^2}{2}", r"\frac12 m v^2_0"), ("a_n", "a_{n}"), ("a_{n+1}", "a_{n + 1}"),
        ("x''", r"x^{\prime\prime}"), (r"\mathbf{v}_0^2", r"\mathbf{v}^2_0"),
        (r"\vec{v}_0", r"\vec v_{0}"), ("10^{3}_{}", "1000"), ("{v}_0", "v_0"),
        ("v_{0}^{2} t", "v^{2}_{0}t"), ("x^{2'}", "x^{2'}"), (r"\log_2^2 8", "9"),
        (r"\log^2_2 8", "9"), ("6", "f'(2) = 6"), ("f'(x)=2x", r"f^{\prime}(x) = 2 x"),
    ],
    "juxtaposed powers": [
        ("15552*1", "2^6 3^5"), ("15552", "2^63^5"), ("2^{6}3^{5}", "2^63^5"),
        ("240", r"3 \cdot 2^4 5"), ("240", "2^4 3^1 5"), (r"2^4 \cdot 3^2", "2^{4} 3^{2}"),
        ("2^{n}3^{m}", "3^m2^n"), (r"2^3\cdot 3^2 5 \cdot 7", "2520"), ("x^2 y^3", "x^2y^3"),
        ("2^63^5 5", "77760"), (r"(n!)^3 \cdot 2^{2n}", "(n!)^3 2^{2n}"),
    ],
    "products that spell words": [
        ("e^{at}", "e^{ta}"), ("at+b", "b + ta"), ("x^{in}", "x^{ni}"), ("am+bn", "bn+am"),
        (r"e^{-at}\cos bt", r"\cos(bt) e^{-at}"), ("mg+ma", "m(g+a)"), ("y = at + b", "y=b+at"),
        (r"\frac{1}{2}at^2", r"\frac{at^2}{2}"), ("v_0+at", "at+v_0"), ("as+b", "b+sa"),
        ("n^{is}", "n^{si}"), (r"\frac{cm}{2}", r"\frac12 mc"), ("e^{is}", "e^{si}"),
        ("(at+b)^2", "a^2t^2+2abt+b^2"), (r"\sin(at)", r"\sin(ta)"), ("f(t)=at+b", "f(t)=b+at"),
        (r"\frac{1+km}{2}", r"\frac12+\frac{mk}{2}"),
        (r"\frac{c b}{d m}", r"\frac{\mathrm{cb}}{\mathrm{dm}}"),
        ("h=gi", r"\mathrm{h}=\mathrm{gi}"), ("min", "min"), ("at^2/2", r"\frac{1}{2}at^2"),
    ],
    "full stops": [
        ("42", "$42.$"), ("42", "42.$"), ("x^2+1", "$x^2+1.$"), (r"\frac12", r"$\frac{1}{2}.$"),
        ("42", r"\(42.\)"), ("42", "$42,$"), ("42", r"$42\text{.}$"), ("42", r"42\,."),
        ("3", r"\[3.\]"), ("(1,2)", "$(1,2).$"), ("5", r"5 \,."), ("5", r"5\ ."),
        ("5", r"\text{5.}"), ("5", "{5.}"), ("5", "5;"), ("5", "5\\\\"),
    ],
    "thousands": [
        ("32349", r"32,\! 349"), ("32349", "32{,}349"), ("32349", r"32\,349"),
        ("32349", r"32\ 349"), ("32349", "32~349"), ("32349", "32\u2009349"),
        ("32349", "32\u202f349"), ("32349", "32'349"), ("32349", "32’349"), ("32349", "32 349"),
        ("1234567", r"1\,234\,567"), ("1234567", r"1,\!234,\!567"), ("1234567", "1{,}234{,}567"),
        ("1234567", "1~234~567"), ("32349.5", r"32\,349.5"), ("32349", r"32\;349"),
        ("32349", r"32\:349"), ("32349", r"32\thinspace 349"), ("32349", r"32\thinspace349"),
        ("32349", r"32\text{,}349"), ("32349", r"32\mathord{,}349"), ("32349", r"32,\,349"),
        ("32349", r"32\!,\!349"), ("32349", "32\u2008349"), ("32349", "32\xa0349"),
        ("32349", "32\u066c349"), ("0.123456", r"0.123\,456"), ("32349", r"32\hspace{0.1em}349"),
        ("(32349, 5)", r"(32\,349, 5)"),
    ],
    "units": [
        ("5 in", '5"'), ("5 inches", "5''"), ("74 inches", '6\' 2"'), ("6 ft 2 in", '6\' 2"'),
        ("5", r"5\text{ in}"), ("5 in", r"5^{\prime\prime}"), ("5 ft", "5'"), ("6'2''", '6\' 2"'),
        ("3 m/s^2", r"3\,m\,s^{-2}"), ("3 m/s", r"3\ m\cdot s^{-1}"),
        ("3 m/s", r"3\,\mathrm{m\,s^{-1}}"), ("3 m/s^2", r"3\text{ m}/\text{s}^2"),
        ("3 m/s^2", r"3\,\text{m}\cdot\text{s}^{-2}"),
        ("3 m/s^2", r"3~\mathrm{m}~\mathrm{s}^{-2}"), ("3 m/s", r"3 \frac{\text{m}}{\text{s}}"),
        ("3 m/s^2", r"3\,\frac{\mathrm{m}}{\mathrm{s}^2}"),
        ("3 m/s", r"3\,\mathrm{m}\mathrm{s}^{-1}"), ("5000 VA", "5 kVA"), ("5000000 VA", "5 MVA"),
        ("0.005 VA", "5 mVA"), ("5 kVA", r"5\,\text{kVA}"), ("5000 W", "5 kW"),
        (r"5 \mu m", "5 µm"), ("0.005 mm", r"5\,\mu\text{m}"), ("5 ohm", r"5\,\Omega"),
        ("5000 ohm", r"5\,\text{k}\Omega"), ("5000 ohm", r"5\,\mathrm{k\Omega}"),
        ("5 kohm", r"5\text{ k}\Omega"), ("25 °C", r"25^\circ\text{C}"),
        ("25 °C", r"25\,^{\circ}\mathrm{C}"), ("25 °C", r"25\,^\circ C"),
        ("25°C", "25 degrees Celsius"), ("25 °C", "25 ℃"), ("3 m/s", r"\SI{3}{\metre\per\second}"),
        ("3 m/s", r"\qty{3}{\meter\per\second}"),
        ("3 m/s^2", r"\SI{3}{\metre\per\second\squared}"), ("3 m/s^2", r"\SI{3}{m/s^2}"),
        ("3 m/s^2", r"\SI{3}{m.s^{-2}}"), ("3 km", r"3\,\si{km}"),
        ("3 km", r"3\,\unit{\kilo\metre}"), ("1234.5", r"\num{1234.5}"), ("3e5", r"\num{3e5}"),
        ("30°", r"\ang{30}"), ("30.5°", r"\ang{30;30;}"),
        ("9.81 N/kg", r"\SI{9.81}{\newton\per\kilogram}"), ("3000 J", r"\SI{3}{\kilo\joule}"),
        ("5 kg m^2/s^2", r"5\,\mathrm{kg\,m^2\,s^{-2}}"), ("5 J", r"5\,\mathrm{kg\cdot m^2/s^2}"),
        ("3 cm^2", r"3\,\text{cm}^2"), ("3 cm^2", r"3\text{ cm}^{2}"),
        ("3 cm^2", "3 square centimeters"), ("3 cm²", r"3\ \mathrm{cm}^2"),
        ("5 m^3", "5 cubic meters"), (r"5\%", "5 percent"),
        ("4.18 J/(g K)", r"4.18\,\mathrm{J\,g^{-1}\,K^{-1}}"), ("120 V", r"120\,\mathrm{V}"),
        ("5 mA", r"5\times10^{-3}\,\mathrm{A}"), ("5 uF", r"5\,\mu\mathrm{F}"),
        ("2.4 GHz", r"2.4\times 10^9\,\text{Hz}"), ("50 km/h", r"50\text{ km/hr}"),
        ("50 km/h", r"50\,\mathrm{km\,h^{-1}}"), ("1.5 hours", "90 min"),
        ("10 m/s", r"36\,\text{km/h}"),
        ("6.626e-34 J s", r"6.626\times10^{-34}\,\mathrm{J\cdot s}"), ("5 Å", "0.5 nm"),
        ("20 mL", "0.02 L"), ("9.8 m/s^2", "9.8 m/s/s"), ("1 kWh", "3.6 MJ"),
        ("12 m^2", r"12 \text{ m}^{\text{2}}"),
    ],
    "sets of numbers": [
        (r"(0,\infty)", r"\mathbb{R}^+"), (r"(0,\infty)", r"\mathbb{R}_{>0}"),
        (r"[0,\infty)", r"\mathbb{R}_{\ge 0}"), (r"[0,\infty)", r"\mathbb{R}_{\geq0}"),
        (r"\mathbb{R}\setminus\{0\}", r"\mathbb{R}^*"),
        (r"(-\infty,0)\cup(0,\infty)", r"\mathbb{R}^*"), (r"(-\infty,0)", r"\mathbb{R}^-"),
        (r"(-\infty,0]", r"\mathbb{R}_{\le 0}"), (r"\mathbb{R}^{+}", "x>0"),
        (r"x\in\mathbb{R}^+", "x>0"), (r"x \ge 0", r"x\in\mathbb{R}_{\ge0}"),
        (r"\mathbb{Z}", "all integers"), (r"\mathbb{Z}", r"\text{all integers}"),
        (r"\mathbb{Z}", "the set of integers"), (r"\mathbb{Z}^+", "all positive integers"),
        (r"\mathbb{Z}_{>0}", r"\mathbb{Z}^+"), (r"\mathbb{N}_0", r"\mathbb{Z}_{\ge0}"),
        (r"\mathbb{N}_0", "all nonnegative integers"),
        (r"\mathbb{N}_0", "all non-negative integers"), (r"\mathbb{N}^*", r"\mathbb{N}^+"),
        (r"\mathbb{N}^*", r"\mathbb{Z}^+"), (r"\mathbb{N}^*", "all positive integers"),
        (r"\mathbb{N}", "all natural numbers"), (r"\mathbb{R}", "all real numbers"),
        (r"\mathbb{R}", r"x \in \mathbb{R}"), (r"(-\infty,\infty)", r"x \in \mathbb{R}"),
        (r"(-\infty,\infty)", r"\text{all reals}"),
        (r"\mathbb{R}\setminus\{0\}", "all real numbers except 0"),
        (r"x\neq 0", r"\text{all real numbers except } 0"),
        (r"x \ne 2", r"\text{all real numbers except } x=2"),
        (r"(-\infty,2)\cup(2,\infty)", "all reals except 2"),
        (r"(-\infty,-1)\cup(-1,1)\cup(1,\infty)", "all real numbers except -1 and 1"),
        (r"(-\infty,-1)\cup(-1,1)\cup(1,\infty)", r"\mathbb{R}\setminus\{-1,1\}"),
        (r"(0,\infty)", "all positive real numbers"),
        (r"[0,\infty)", "all nonnegative real numbers"), (r"(0,\infty)", "positive reals"),
        (r"\mathbb{Q}", "all rational numbers"), (r"\mathbb{R}", r"\R"),
        (r"\mathbb{C}", "all complex numbers"), (r"\mathbb{R}", "ℝ"), (r"\mathbb{R}^+", "ℝ⁺"),
        (r"n\in\mathbb{N}^*", r"n \in \mathbb{Z}^+"),
        (r"a_n=2n-1, n\in\mathbb{N}^*", r"a_n = 2n-1 (n \in \mathbb{N}^*)"),
        (r"(-\infty,\infty)", r"\mathbb{R}"), (r"\mathbf{R}", r"\mathbb{R}"),
        (r"x\in\mathbf{R}", r"x\in\mathbb{R}"), (r"\mathbb{R}", r"\text{all real } x"),
        (r"\mathbb{R}", r"\text{All real values of } x"), (r"x \neq 2", r"\mathbb{R} - \{2\}"),
        (r"\mathbb{R}", r"-\infty < x < \infty"),
    ],
    "dates": [
        ("May 5, 2024", "2024-05-05"), ("May 5, 2024", "5 May 2024"),
        ("May 5, 2024", "May 5th, 2024"), ("May 5, 2024", "5th of May 2024"),
        ("July 29, 1946", "29 July 1946"), ("October 28th", "October 28"),
        ("October 28", "28 October"), ("October 28", "Oct. 28"),
        ("May 5, 2024", "Sunday, May 5, 2024"), ("May 5, 2024", "May 5 2024"),
        ("2024-05-05", "2024/05/05"), ("Monday", "monday"), ("May 5, 2024", r"\text{May 5, 2024}"),
        ("May 5, 2024", r"\text{May } 5, 2024"), ("May 13, 2024", "5/13/2024"),
        ("May 13, 2024", "13/05/2024"), ("13 May 2024", "13.05.2024"),
        ("2024年5月5日", "2024-05-05"), ("October 28", "the 28th of October"),
        ("March 2024", "Mar 2024"), ("May 5, 2024", "on Sunday, May 5, 2024"),
    ],
    "times of day and durations": [
        ("15:30", "3:30 pm"), ("15:30:00", "15:30"), ("3:30 pm", "3:30 p.m."),
        ("3:30 PM", r"3:30\text{ PM}"), ("3 pm", "15:00"), ("3 pm", "3:00 p.m."),
        ("3:00 pm", "3 pm"), ("12:00 pm", "noon"), ("12:00 am", "midnight"), ("0:00", "12:00 am"),
        ("00:00", "midnight"), ("9:05 am", "09:05"), ("9:05 am", r"9\!:\!05\text{ a.m.}"),
        ("9:05 am", "9{:}05 am"), ("3:30 pm", r"15\text{:}30"),
        ("3:30 pm", "3:30 in the afternoon"), ("12:30 am", "00:30"), ("15:30", "15h30"),
        ("3 h 30 min", "3.5 h"), ("3 h 30 min", "210 min"), ("2 hours, 30 minutes", "2.5 hours"),
        ("1 h 2 min 3 s", "3723 s"), ("1 hour, 2 minutes and 3 seconds", "3723 seconds"),
        ("3 years 6 months", "3.5 years"), ("5 feet 6 inches", "66 inches"),
        ("2 weeks 3 days", "17 days"), ("5 o'clock", "5:00"), ("15:30", r"3\!:\!30 \text{ p.m.}"),
    ],
    "bases": [
        ("1F_{16}", "1F_{16}"), ("0x1F", "1F_{16}"), ("101_2", r"101_{\text{two}}"),
        ("101_2", "(101)_2"), ("101_2", "(101)_{2}"), ("101_2", "0b101"), ("101_2", "101_{two}"),
        ("101_2", "101_{(2)}"), ("1F_{16}", "1f_{16}"), ("1F_{16}", r"\text{1F}_{16}"),
        ("1F_{16}", r"\mathrm{1F}_{16}"), ("1F_{16}", "(1F)_{16}"),
        ("AB_{16}", r"\mathrm{AB}_{16}"), ("AB_{16}", "ab_{16}"), ("101_2", "101 base 2"),
        ("101_2", r"101 \text{ in base two}"), ("101_2", r"101_{\text{base }2}"),
        ("101_2", r"101\text{ binary}"), ("11011_2", r"1\,1011_2"),
        ("204_5", r"204_{\text{five}}"), ("17_8", "0o17"), ("204_5", r"204_{\mathrm{five}}"),
        ("1000_{10}", "1000"),
    ],
    "scripts of the world": [
        ("3.14", "٣٫١٤"), ("1234", "١\u066c٢٣٤"), ("3.14", "۳٫۱۴"), ("42", "४२"), ("42", "４２"),
        ("3.14", "３．１４"), (r"\sqrt{3}", "根号3"), (r"\sqrt{3}", "根号下3"),
        (r"2\sqrt{3}", "2根号3"), (r"\sqrt{3}", "√3"), ("-5", "负5"), ("-5", "负五"),
        (r"\frac{2}{3}", "3分之2"), (r"\frac{2}{3}", "三分之二"), (r"-\frac{2}{3}", "负三分之二"),
        (r"\pi", "pi"), (r"2\pi", "2π"), (r"2\pi", "two pi"), ("x^2", "x²"), ("x^{10}", "x¹⁰"),
        ("x^{-1}", "x⁻¹"), ("x_1", "x₁"), (r"\frac12", "½"), ("2.5", "2½"), (r"\frac{1}{7}", "⅐"),
        (r"\frac19", "⅑"), (r"\frac{1}{10}", "⅒"), ("60°", "60度"), ("60°", "六十度"),
        (r"50\%", "50％"), (r"\frac{1}{2}", "1⁄2"), ("x^2+1", "x²＋１"), ("30", "三十"),
        (r"\sqrt{2}", "square root of 2"), (r"\sqrt{2}", r"\text{the square root of } 2"),
        (r"\sqrt{2}", "√(2)"), ("H_2O", "H₂O"), (r"x\ge 3", "x≥3"),
        (r"\frac{\sqrt{3}}{2}", "√3/2"), ("x^{a}", "xᵃ"), (r"\frac{\pi}{2}", "π/2"),
        ("5 米", "5 m"), ("3 cm²", "3 平方厘米"), (r"2\sqrt[3]{5}", "2∛5"), ("1/2", "二分之一"),
        ("5", "５"), ("x = 3", "x＝3"), ("(1, 2)", "（1，2）"), ("12345", "一万二千三百四十五"),
        ("-3.5", "−3.5"), ("-3.5", "﹣3.5"), (r"\frac13", "0.3̅"),
    ],
    "dressings": [
        ("5", r"\displaystyle 5"), (r"\frac12", r"\dfrac12"),
        (r"\frac12", r"\displaystyle\frac{1}{2}"), (r"\frac12", r"\left.\frac12\right."),
        (r"\left|x\right|", "|x|"), ("|x|", r"\lvert x\rvert"), ("(1,2)", r"\bigl(1,2\bigr)"),
        ("(1,2)", r"\Big(1,\, 2\Big)"), (r"\sin x", r"\operatorname{sin} x"), ("5", r"\text{5}"),
        ("5", r"\mathbf{5}"), ("5", r"\boldsymbol{5}"), ("5", r"\color{red}{5}"),
        ("5", r"\textcolor{blue}{5}"), ("5", r"{\color{red} 5}"), ("5", r"\underline{5}"),
        ("5", r"\fbox{5}"), ("5", r"\boxed{5}"), ("5", r"\phantom{0}5"), ("5", r"\bm{5}"),
        ("x", r"\mathit{x}"), ("5", r"\large 5"), ("5", r"\bf 5"), ("5", r"\mathrm{5}"),
        ("5", r"\mathbf{\underline{5}}"), ("5", r"\boldsymbol{\color{blue}{5}}"),
        (r"\frac12", r"\mathbf{\frac{1}{2}}"), (r"\frac12", r"\boldsymbol{\dfrac{1}{2}}"),
        (r"\frac12", r"\boxed{\frac12}"), ("x^2+1", r"\underline{x^2+1}"), ("5", r"\textbf{5}"),
        ("5", r"\texttt{5}"), ("5", r"\underline{\underline{5}}"),
        ("5", r"\underline{\textbf{5}}"), ("5", r"\mathbin{5}"), ("5", r"\colorbox{yellow}{5}"),
        ("5", r"\bbox[5px, border: 2px solid red]{5}"), ("5", r"\framebox{5}"),
        (r"\frac{5}{2}", r"\textcolor{red}{\frac{5}{2}}"), ("5000", r"5 \times 10^{3}"),
        ("5e-3", r"5 \times 10^{-3}"), ("0.005", "5e-3"), ("0.005", "5E-3"),
        ("5000", r"5\cdot10^3"), ("5000", "5*10**3"), ("5", r"\approx 5"), ("5", "≈ 5"),
        ("5", "= 5"), (r"-e^{\pi/2}", "= -e^(π/2)"), (r"\pm 5", "±5"), ("5", "**5**"),
        ("5", "`5`"), ("5", "*5*"), ("5", "__5__"), ("x<5", "x &lt; 5"), ("x<5", "x&lt;5"),
        ("x^2", "x<sup>2</sup>"), ("x_1", "x<sub>1</sub>"), ("5", "<b>5</b>"),
        ("5", "<strong>5</strong>"), (r"x\le 5", "x &le; 5"), (r"2\pi", "2&pi;"), ("5", r"\(5\)"),
        ("5", "$$5$$"), ("5", r"\[5\]"), ("5", "\\[\n5\n\\]"),
        ("5", r"\begin{align*}5\end{align*}"), ("5", r"\begin{aligned}5\end{aligned}"),
        ("x=5", r"\begin{align*} x &= 5 \end{align*}"),
        ("5", r"\begin{equation*}5\end{equation*}"), ("5", r"\begin{equation}5\end{equation}"),
        ("5", r"\begin{math}5\end{math}"), ("5", r"\begin{gather*}5\end{gather*}"),
        ("5", r"\begin{displaymath}5\end{displaymath}"), ("5", r"\begin{center}5\end{center}"),
        ("x>1", "x &gt; 1"), ("5", r"\text{$5$}"), ("5", r"\mbox{5}"),
        (r"\frac12", r"\text{$\frac{1}{2}$}"), ("5", r"5 \quad"), ("5", r"5\,\text{units}"),
        (r"5\%", r"5 \,\%"), ("x^2", r"\mathrm{x}^2"), ("90°", r"90\textdegree"),
        ("90°", r"90^\textcirc"), ("90°", r"90\u00B0"), ("90°", r"90^{\textdegree}"),
        ("90°", "90^o"), ("90°", "90&deg;"), ("90°", r"90\,{}^{\circ}"), ("5", r"\tag{1} 5"),
        ("5", r"5 \tag*{1}"), ("5", r"5\checkmark"), ("5", r"5 \checkmark"), ("5", r"\{\,5\,\}"),
        ("5", r"5 \qquad \blacksquare"), ("5", r"5 \blacksquare"), ("5", "5 ✓"), ("5", r"\huge 5"),
        (r"\frac12", r"\frac{\displaystyle 1}{\displaystyle 2}"), (r"\frac12", r"{1 \over 2}"),
        (r"\frac12", r"\frac 1 2"), (r"\frac12", r"\frac1{2}"), (r"\frac{x}{2}", r"\frac x2"),
        ("x+1", r"x\;+\;1"), ("(1,2)", r"\left\langle 1,2\right\rangle"),
        ("x+1", r"\mathopen{}x+1\mathclose{}"), ("5", r"\textstyle 5"),
        (r"5\sqrt2", r"5\sqrt{2\,}"), (r"\binom52", r"{5\choose 2}"),
        ("(1,2)", r"\lparen 1,2\rparen"), ("5", "5\ufe0f"), ("5", "$5$ "),
        ("5", r"$\displaystyle 5$"), ("5", r"\rm{5}"), ("5", r"\cal{5}"),
        ("5", r"\Large\boxed{5}"), (r"[\frac{4}{3},2]", r"\left [\dfrac{4}{3} ,\, 2\right ]"),
        ("x=5", r"\therefore x = 5"), ("5", r"\therefore 5"), ("5", r"\implies 5"),
        ("5", r"\Rightarrow 5"), ("5", "→ 5"), ("x^2", "x^{2}{}"), (r"x\cdot y", r"x\bullet y"),
        (r"3.0\times 10^8", r"3.0\times{10}^{8}"), ("3e8", "3E8"), ("3e8", "3 × 10⁸"),
        ("3e8", "3*10^8"), ("3e8", "3.0x10^8"), ("3e8", r"3 \, \mathrm{e}8"),
        ("5", r"\textbf{Answer: 5}"), ("x = 5", r"\mathbf{x = 5}"), ("x = 5", r"\text{x = 5}"),
        ("(1, 2)", r"\boldsymbol{(1, 2)}"),
    ],
    "the web's notations": [
        ("(1,2)", "(1,2)}"), (r"\{x|-2<x<3\}", "{x|-2 < x < 3}"), ("(-2,3)", "{x|-2 < x < 3}"),
        (r"\{x \mid x>1\}", "x|x > 1"), (">", r"\gt"), (r"\ge", r"\geqslant"), (r"\ge", "≥"),
        (r"\frac32", r"f(x)_{max}=\frac{3}{2}"), ("4", r"|PC|_{\text{max}} = 4"),
        ("x_1<x_2", "x1 < x2"), ("x_1=x_2=-1", "x1 = x2 = -1"), ("y_1>y_2", "y1 > y2"),
        (r"\bigcup_{k=-\infty}^{\infty}(2 k \pi,(2 k+2) \pi)",
         r"\bigcup_{n=-\infty}^{\infty}(2 n \pi,2(n+1) \pi)"),
        (r"\bigcup_{k\in\mathbb{Z}}(2 k \pi,(2 k+2) \pi)",
         r"\bigcup_{k \in \mathbb{Z}}(2 k \pi,2(k+1) \pi)"),
        ("x=7", r"\max at x=7"), (r"\min at $x=1$", r"\text{min at } x = 1"),
        ("n<-7 or n>8", r"$n<-7$ or $n>8:(-\infty,-7)\bigcup(8, \infty)$"),
        (r"m>4 or m \leqslant -1", r"$m>4$ or $m \leqslant-1:(-\infty,-1] \cup(4, \infty)$"),
        (r"\text{No solution}", r"No solution : $\oslash$"), ("-37", r"\text{Answer: } -37"),
        ("-37", "\text{Answer: } -37"),
        (r"f(x)=x, x\in\mathbb{R}^+", r"f(x) = x \text{ for all } x \in \mathbb{R}^{+}"),
        (r"(2k\pi,2k\pi+\pi), k\in\mathbb{Z}",
         r"(2k\pi, 2k\pi + \pi), \text{ for } k \in \mathbb{Z}"),
        (r"(2k\pi,2k\pi+\pi), k\in\mathbb{Z}", r"(2k\pi, 2k\pi + \pi) \quad (k \in \mathbb{Z})"),
        (r"\pi/6+2n\pi, n\in\mathbb{Z}", r"\pi/6+2n\pi, any integer n"),
        (r"\forall x\in\mathbb{R}, x^2+1>0", "∀x ∈ ℝ, 1+x^2>0"),
        ("∃x > 0, f(x) ≤ 0", r"\exists x>0, f(x)\le 0"), (r"A: \frac12", r"A:\frac{1}{2}"),
        (r"179^\circ 59' 56''", r"$179^{\circ} 59^{\prime} 56^{\prime \prime}$"),
        ("110", "110/month"), ("60°", "60^\n"), ("60°", "60^\textcirc"),
        ("f'(1)", r"f^{\prime}(1)"), (r"\mathbf{f}'(t)=(1,2t)", r"\mathbf{f}^{\prime}(t)=(1,2 t)"),
        (r"concave up on (0,\infty)", r"\text{concave up on } (0, \infty)"),
        (r"domain: \mathbb{R}, range: [-1,1]",
         r"\text{domain: } \mathbb{R},\ \text{range: } [-1, 1]"),
        ("max at x=2, min at x=4", "min at x=4, max at x=2"),
        (r"If a=0, then a^2\le 0", r"\text{If } a = 0, \text{ then } a^2 \leq 0"),
        (r"f(n)=n, n\in\mathbb{N}", r"f(n) = n \quad \forall n \in \mathbb{N}"),
        (r"(t, 2t), t\in\mathbb{R}", "(t, 2t) for all real numbers t"),
        ("GCD(102, 238) = 34", r"\text{GCD}(102, 238) = 34"),
        (r"\operatorname{Cov}(Z,W)=0", r"\operatorname{Cov}(Z, W) = 0"),
    ],
}  # fmt: skip

DIFFERENT: dict[str, list[tuple[str, str]]] = {
    "near misses of upright letters and of words": [
        ("0x1F", r"0\text{x}1E"), ("2", r"\text{0b101}"), (r"2 \times 10^{-3}", r"2\mathrm{e}-3"),
        ("Wednesday", r"\text{It is a Thursday}"), ("Wednesday", "not on Wednesday"),
        ("9:45 pm", "20:45 hours"), ("58", r"\text{The constant must not be } 58"),
        ("58", r"\text{The constant must be } 58 \text{ or } 59"), ("728", "72{,}8"),
    ],
    "near misses of all classes": [
        ("5 in", "5 in^2"), ('6\'2"', "6.2 ft"), ('6\'2"', "62 in"), ("5 ft", "5''"),
        ("x^{in}", "x^{i+n}"), ("e^{at}", "e^{a}t"), ("e^{at}", "e^a t"),
        (r"\mathbb{Z}", "all integers except 0"), (r"\mathbb{Z}", r"\mathbb{Z}\setminus\{0\}"),
        ("x>0", "all real numbers except 0"), (r"x\ge0", r"\mathbb{R}^+"),
        (r"\mathbb{R}^+", r"\mathbb{R}\setminus\{0\}"), ("2^6 3^5", "2^5 3^6"),
        ("15552", "2^5 3^6"), ("15552", "2^6 + 3^5"), ("10", "10^3 2"), ("(1,2)", "12"),
        ("32,349", "32.349"), ("32349", "32.349"), ("1.5", r"1\,5"), ("15", r"1\,5"),
        ("1005", "1 005 0"), ("0x1F", "1F_{17}"), ("255", "0xFF"), ("0xFF", "255"), ("0b11", "3"),
        ("11", "0b11"), ("101_2", "101_{10}"), ("5", "101_2"), ("12:30 am", "12:30"),
        ("00:30", "12:30 pm"), ("noon", "0:00"), ("3:30", "15:30"), ("15:30", "3:30 am"),
        ("3 pm", "3 am"), ("3 pm", "15"), ("24:00", "12:00"), ("May 5, 2024", "May 2024"),
        ("May 5", "May"), ("2024", "May 5, 2024"), ("May 5, 2024", "2024"), ("5", "5 May"),
        ("5", "May 5"), ("5", "the 5th of May"), ("30", "September 30"), ("5 kVA", "5 kV"),
        ("5 kVA", "5 kvar"), ("5 A", "5 mA"), ("5 A", "5 Å"), ("5 Ω", "5 MΩ"), ("5 mΩ", "5 MΩ"),
        ("5 µm", "5 mm"), ("3 m/s", "3 m s"), ("3 m/s^2", "3 m^2/s"), ("9.8 m/s^2", "9.8 m/s"),
        (r"3\,\mathrm{m\,s^{-2}}", r"3\,\mathrm{m\,s^{2}}"), ("25°C", "25°F"), ("30°", "30'"),
        ("30°", "30''"), ("30°15'", "30.15°"), (r"\sqrt{3}", "根号3 或 根号5"),
        ("2/3", "3分之2 或 1"), ("-5", "负负5"), ("5", "负负5"), ("x<5", "x &gt; 5"),
        ("x<5", "x &le; 5"), ("x^2", "x<sub>2</sub>"), ("5", "<del>5</del>"), ("5", "~~5~~"),
        ("5", "5^"), ("25", "5^"), ("4", "|PC|_{max}=|PC|_{min}=4, 5"), ("5", r"\text{not } 5"),
        ("5", r"\Rightarrow 5 \text{ or } 6"), ("5", "= 5 = 6"), ("5", "6 = 5"), ("5", "if x = 5"),
        ("5", "5 if x > 0"), ("5", "5 for some x"), ("x>0", "x>0 if x<1"), ("3", "exists x = 3"),
        ("3", "for all x, x = 3"), ("x=3", r"\forall y, x=3"), ("max at 2, min at 4", "max at 2"),
        ("max at 2, min at 4", "2, 4"), ("min at 4", "max at 4"), ("4", "min at 4 or 5"),
        ("x_1 < x_2", "x2 < x1"), ("x_1", "x"), ("x_{12}", "x_1 2"), ("x_1x_2", "x_{12}"),
        ("2x_1", "x_{21}"), ("v_0^2", "v_0 2"), ("v_0^2", "2v_0"), ("v_0^2", "(v^2)_0 + 1"),
        ("x'", "x"), ("x''", "x'"), ("x^*", "x"), ("x^+", "x^-"), ("f'(x)", "f(x)"),
        ("A^{-1}", "A^-"), ("A^T", "A^*"), (r"\bigcup_{k}(k,k+1)", r"\bigcup_{k}(k,k+2)"),
        ("all real numbers except 1 and 2", "all real numbers except 1"),
        ("all real numbers except 1", "all real numbers except -1"),
        ("x ≠ 1", "all integers except 1"), ("positive integers", "nonnegative integers"),
        ("all even integers", "all integers"), ("no integers", "all integers"),
        ("not all integers", "all integers"), ("real", "all real numbers"), ("at+b", "at-b"),
        ("at+b", "a+tb"), ("am+bn", "an+bm"), ("5 cm", "5 c m + 1"), ("is", "si"), ("to", "ot"),
        ("in", "5 in"), ("max", "m a x"), ("5 min", "5 m i n + 1"), ("1234", "1'23'4"),
        ("1234", "12'34"), ("1234567", "1'234567"), ("12'345", "12 ft 345"),
        ("1.234.567", "1.234567"), ("3.14", "3,14,15"), ("0.5", "0,5,0"), ("5", "５６"),
        ("5", "٥٦"), ("0.5", "٠٫٥٥"), ("1000", "١٠٠"), ("f(x)", "f'(x)"), ("f'(x)", "f''(x)"),
        ("f(2)=6", "f'(2)=6"),
    ],
    "scripts in either order": [
        ("v_0^2", "v_2^0"), ("v_0^2", "v^0_2"), ("x'_1", "x_1"), ("x'_1", "x''_1"),
        ("x_{12}", "x_{1,2}"), ("x_{1,2}", "x_{2,1}"), ("x_1", "x^1"), (r"M_\odot", r"M_\oplus"),
        ("2^3_4", "8"), ("v^2_0", "v^2"),
    ],
    "juxtaposed powers": [
        ("15552", "2^{63^5}"), ("2^{63}5", "2^635"), ("6^5", "2^6 3^5"), ("2^3 5", "2^{35}"),
        ("23", "2 3"), ("5", "2 + 2 3"), ("8 3", "24"), ("12", "3 4"), ("40", "2^3, 5"),
    ],
    "products that spell words": [
        ("e^{at}", "e^{a+t}"), ("at", "ta=1"), ("min", "mni"), ("in", "ni"), ("5 min", "5 nim"),
        ("cat", "act"), ("cos", "soc"), ("no", "on"), ("5", "5 in at"), ("5 at", "5"),
        ("e^{at}", r"e^{\text{as}}"),
    ],
    "full stops": [
        ("42", ".42"), ("42", "4.2"), ("42", "42..1"), ("42", "42.1."), ("4.2", "42."),
        ("5", "5!"),
    ],
    "thousands": [
        ("32349", "32, 349"), ("32349", "(32,349)"), ("32349", r"\{32,349\}"), ("1234", "1 234 5"),
        ("32349", "32'34'9"), ("32349", r"32\,34"), ("3234", r"32\,34"), ("32349", "3 2349"),
        ("32, 349", "32349"), ("1,2,3", "123"), (r"(1\,234, 5)", "(1,2345)"), ("12", r"1\,2"),
        ("23", "2 3"), ("12345", "12, 345"),
    ],
    "units": [
        ("5 in", "5 ft"), ("74 inches", '6\'3"'), ('5"', "5'"), ("3 m/s^2", r"3\,m\,s^{-1}"),
        ("3 m/s", r"3\,m\cdot s"), ("5 kVA", "5 VA"), ("5 mVA", "5 MVA"), ("5 kVA", "5 kV"),
        (r"5\,\mu m", "5 m"), (r"5\,\mu m", "5 mm"), (r"5\Omega", r"5\text{k}\Omega"),
        ("25°C", "25°F"), ("25°C", "25 K"), ("3 m/s", r"\SI{3}{\metre\second}"),
        ("30°", r"\ang{31}"), ("3 m/s", r"\SI{3}{\kilo\metre\per\second}"), ("3e5", r"\num{3e6}"),
        ("5 kVA", "5 kW"), ("5", "5''"), ("5", "5'"),
    ],
    "sets of numbers": [
        (r"\mathbb{R}^+", r"\mathbb{R}_+"), (r"\mathbb{R}^+", r"[0,\infty)"),
        (r"\mathbb{R}_{\ge0}", r"(0,\infty)"), (r"\mathbb{R}^+", r"\mathbb{R}"),
        (r"\mathbb{R}^*", r"\mathbb{R}"), (r"\mathbb{Z}", r"\mathbb{R}"),
        (r"\mathbb{Z}", r"\mathbb{N}"), (r"\mathbb{Z}^+", r"\mathbb{N}_0"),
        (r"\mathbb{Z}^+", r"(0,\infty)"), (r"\mathbb{Z}^+", r"\mathbb{R}^+"),
        (r"\mathbb{N}", "all integers"), (r"\mathbb{Z}", "all positive integers"),
        (r"\mathbb{Z}", "all even integers"),
        (r"\mathbb{R}\setminus\{0\}", r"\mathbb{R}\setminus\{1\}"),
        (r"\mathbb{R}", "all real numbers except 0"), (r"\mathbb{R}", r"\mathbb{R}^2"),
        (r"\mathbb{R}^2", r"\mathbb{R}^3"), (r"\mathbb{R}^+", r"\mathbb{R}^-"),
        (r"\mathbb{Z}", r"\mathbb{Z}_5"), (r"\mathbb{Z}_+", r"\mathbb{Z}_5"),
        (r"x\neq 2", r"\text{all real numbers except } 3"), ("all real numbers except 0", "0"),
        ("all integers", "all real numbers"), ("5", "all real numbers except 5"),
        (r"\mathbb{R}^{+}", r"\mathbb{R}+"), (r"\mathbb{N}^*", r"\mathbb{N}_0"),
        (r"\mathbb{N}", r"\mathbb{N}_0"), ("R", r"\mathbb{R}"), (r"\mathbb{R}", r"0 < x < \infty"),
    ],
    "dates": [
        ("May 6, 2024", "5/6/2024"), ("June 5, 2024", "5/6/2024"), ("May 5, 2024", "May 6, 2024"),
        ("May 5, 2024", "May 5, 2023"), ("May 5, 2024", "June 5, 2024"),
        ("October 28", "October 29"), ("May 5, 2024", "5, 2024"), ("5", "May 5"), ("May", "5"),
        ("2024-05-05", "2014"), ("2014", "2024-05-05"), ("Monday", "Tuesday"),
        ("Sunday, May 5, 2024", "Monday, May 5, 2024"), ("May 5, 2024", "February 30, 2024"),
        ("May 5", "May 5 or May 6"), ("October 28", "October 28, 2024"),
    ],
    "times of day and durations": [
        ("15:30", "3:30"), ("3:30 pm", "3:30 am"), ("12:00 am", "noon"), ("12:00 pm", "midnight"),
        ("12:00", "0:00"), ("12:00 pm", "12:00 am"), ("3:30", "3.5"), ("3:30", "3.30"),
        ("3 h 30 min", "3 h 40 min"), ("3 h 30 min", "3.3 h"), ("15:30", "15:30:01"),
        ("12:30 am", "12:30 pm"), ("0:30", "12:30 pm"), ("1 h 2 min 3 s", "1 h 2 min"),
        ("25:00 pm", "1:00 am"),
    ],
    "bases": [
        ("31", "0x1F"), ("31", "0x1f"), ("5", "0b101"), ("15", "0o17"), ("31", "0x2F"),
        ("0x1F", "1F"), ("101", "0b101"), ("101_2", "101_3"), ("101_2", "0b111"), ("101_2", "5"),
        ("0", "0x1F"), ("12_3", "0b12"), ("1F_{16}", "1F_{15}"), ("AB_{16}", "BA_{16}"),
        ("101_2", r"101_{\text{three}}"), ("1011_2", "1 011_3"), ("31", "1F"), ("0b101", "0x101"),
    ],
    "scripts of the world": [
        ("3.14", "٣٫١٥"), ("1.234", "١\u066c٢٣٤"), (r"\sqrt{3}", "根号2"), ("-5", "5"),
        (r"\frac23", "2分之3"), ("60°", "60分"), (r"\sqrt{3}", "3"), (r"2\sqrt{3}", "根号23"),
        ("2", "√2"), (r"\sqrt{2}", "square root of 3"), (r"\sqrt{5}", "square root of 2 + 3"),
        ("42", "४३"), (r"\frac13", "0.3"),
    ],
    "dressings": [
        ("5", r"\cancel{0}5"), ("5", r"\cancel{5}"), ("5", r"\cancel{5}3"), ("53", r"\cancel{5}3"),
        ("5", r"\phantom{5}"), ("52", "5<sup>2</sup>"), ("52", "5²"), ("5", r"\neq 5"),
        ("5", "> 5"), ("5", "< 5"), ("5", "x<5"), ("5", "5*"), ("10", "5**2"),
        ("12", r"\begin{align*}1\\2\end{align*}"), ("5", r"\begin{align*}5\\6\end{align*}"),
        ("5", r"\color{5}"), ("x>5", "x &lt; 5"), ("5", "&lt;5"), ("53", r"\tag{5}3"),
        ("5", r"\tag{5}"), ("2", r"\sqrt{2}"), ("5", "~~5~~"), ("5", "<s>5</s>"),
        ("5", "<del>5</del>"), ("5", r"\sout{5}"), ("5", r"\st{5}"), ("5", r"\xcancel{5}"),
        ("5", r"\not 5"), ("5", r"\lnot 5"), ("5", "5?"), ("56", "<p>5</p><p>6</p>"),
        ("12", "<div>1</div><div>2</div>"),
    ],
    "the web's notations": [
        (r"\gt", r"\lt"), (r"\ge", r"\gt"), ("5", ">"), ("4", r"|PC|_{\text{max}} = 5"),
        (r"|PC|_{\max} = 4", r"|PC|_{\min} = 4"),
        ("f(x)_{max}=3, f(x)_{min}=1", "f(x)_{max}=1, f(x)_{min}=3"), ("x_1<x_2", "x1 > x2"),
        ("x_1", "2x"), ("x1", "x"),
        (r"\bigcup_{k=-\infty}^{\infty}(2 k \pi,(2 k+2) \pi)",
         r"\bigcup_{k=-\infty}^{\infty}[2 k \pi,(2 k+2) \pi]"),
        (r"\bigcup_{k=-\infty}^{\infty}(2 k \pi,(2 k+2) \pi)",
         r"\bigcup_{k=0}^{\infty}(2 k \pi,(2 k+2) \pi)"),
        (r"\bigcup_{k=-\infty}^{\infty}(2 k \pi,(2 k+2) \pi)",
         r"\bigcup_{k=-\infty}^{\infty}(2 k \pi,(2 k+1) \pi)"),
        (r"\max at x=7", r"\min at x=7"), (r"\max at x=2, min at x=4", r"\max at x=4, min at x=2"),
        (r"\forall x\in\mathbb{R}, x^2+1>0", r"\exists x\in\mathbb{R}, x^2+1>0"),
        (r"\forall x>0, x^2-x>0", r"\forall x>0, x^2-x\ge0"),
        (r"\forall x>0, x^2>x", r"\forall x<0, x^2>x"), ("60°", "61^\n"), ("2^x", "2^"),
        ("110/month", "111"), ("5", "5 where x = 3"), ("f(x)=x, x>0", "f(x)=x, x<0"), ("5", "5^6"),
        ("5", "5 if x = 5"), ("x_1 = 2", "2x = 1"),
        (r"concave up on (0,\infty)", r"concave down on (0,\infty)"),
        (r"domain: \mathbb{R}, range: [-1,1]", r"domain: [-1,1], range: \mathbb{R}"),
        ("0b11000000", "11000000"), ("0x10", "10"), ("0,942", "942"), ("942", "0,942"),
        (r"299\text{ kg}", r"\text{The result is 299 grams}"),
        ("If a=0, then b=0", "If b=0, then a=0"), ("7", r"x^{7}_{\max}"),
    ],
}  # fmt: skip


def _cases(table: dict[str, list[tuple[str, str]]]) -> list[object]:
    return [
        pytest.param(*pair, id=f"{name}-{pair[0]}-{pair[1]}"[:60])
        for name, pairs in table.items()
        for pair in pairs
    ]


def _equal(reference: str, answer: str) -> bool | None:
    return compare(read(reference), read(answer)).equal


@pytest.mark.parametrize(("one", "other"), _cases(SAME))
def test_is_read_as_one_answer(one: str, other: str) -> None:
    assert _equal(one, other) is True
    assert _equal(other, one) is True


@pytest.mark.parametrize(("reference", "answer"), _cases(DIFFERENT))
def test_is_not_taken_for_another(reference: str, answer: str) -> None:
    assert _equal(reference, answer) is not True


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("4 &times; 7", "28"), ("4<sup>2</sup>", "16"), ("4\u00b2", "16"),
        ("\u0664*\u0667", "28"), ("2^6 3^5", "15552"), (r"2^{6}3^{5}", "15552"),
    ],
)  # fmt: skip
def test_no_notation_hides_a_computation_that_is_left_to_do(answer: str, reference: str) -> None:
    outcome = grade(f"\\boxed{{{answer}}}", reference, undone_work="reject")
    assert (outcome.reward, outcome.tier) == (0.0, "undone-work")


@pytest.mark.parametrize(
    "text",
    [
        "x^{" + "'" * 2900, "<b>" * 900, "&lt;" * 700, "_a_" * 900, "*" * 2999, "5 h " * 700,
        r"\text{at}" * 300, "at+" * 900, "x1" * 1400, r"\SI{" * 700, r"\ang{1;" * 400,
        r"\mathbb{R}^+" * 250, "max at " * 400, r"\forall x," * 280, "x|x" * 900, "根号" * 1400,
        "2^63" * 700, "(for n" * 450, "5''" * 900, r"\mathrm{m^{-2}" * 200, "if " * 900,
        "all real numbers except " * 120, "2024-01-0" * 300, r"\bigcup_{k" * 280, "0x" * 1400,
        "1 000" * 560, "𝑥" * 2900, "\u0661\u066c" * 1400, r"\u0661" * 500,
    ],
    ids=lambda text: text[:12].encode("ascii", "replace").decode(),
)  # fmt: skip
def test_hostile_notations_are_read_quickly(text: str) -> None:
    started = time.process_time()
    assert compare(read("7"), read(text)).equal is not True
    assert time.process_time() - started < 0.5


def test_named_boxes_are_not_exchanged() -> None:
    reference = r"We get $x = \boxed{-2}$ and $y = \boxed{12}$."
    assert grade(r"So $x = \boxed{12}$ and $y = \boxed{-2}$.", reference).reward == 0.0
    assert grade(r"So $y = \boxed{12}$ and $x = \boxed{-2}$.", reference).reward == 1.0
    assert grade(r"So $x = \boxed{-2}$ and $y = \boxed{12}$.", r"-2, 12").reward == 1.0
    assert grade(r"So $\boxed{x = -2}$ and $\boxed{y = 12}$.", reference).reward == 1.0
    assert grade(r"So $\boxed{(-2, 12)}$.", reference).reward == 1.0
