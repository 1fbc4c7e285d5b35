"""The arithmetic of the algorithms: pure functions of tensors, without TRL, network or clock."""
