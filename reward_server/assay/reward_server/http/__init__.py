"""The reward server over HTTP (`assay.kit.http`): the contract as JSON, and the journal's pages."""
