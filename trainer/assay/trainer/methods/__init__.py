"""Methods as compositions of named parts: the table, switching parts off, and saying it in words.

parts      the table: what a part is, its paper, whether it is on, how to switch it off
ablation   settings with parts switched off
presets    which parts each published method is made of
explain    a composition in words

Nothing here imports torch: a composition is told, and a mistake in it refused, at once.
"""
