"""The environments that come with Assay; each is an entry point of `assay.environments`."""
