"""Learning from stored responses: supervised and offline stages."""
