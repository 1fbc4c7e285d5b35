"""What peers' tests need to reach sessions: one module a peer, loaded in the peer's interpreter."""
