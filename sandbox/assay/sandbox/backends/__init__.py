"""Other ways to isolate a program than the jail, behind the interface of `assay.sandbox.box`."""
