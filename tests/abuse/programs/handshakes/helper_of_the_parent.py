# the parent clones a helper once the keeper has looked
# copies: refused
SERVE._split = lambda self, *given: (helper(), REAL["split"](self, *given))[1]
