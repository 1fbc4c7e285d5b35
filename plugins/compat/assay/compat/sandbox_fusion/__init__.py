"""SandboxFusion's endpoints, over the sandbox."""
