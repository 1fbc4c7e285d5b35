"""Wire formats of others, as faces of Assay's services over HTTP (`assay.kit.http.faces`)."""
