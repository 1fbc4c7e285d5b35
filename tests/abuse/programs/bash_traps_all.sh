for signal in $(seq 1 64); do trap '' "$signal" 2>/dev/null; done
exec >/dev/null
while ((SECONDS < 60)); do :; done
