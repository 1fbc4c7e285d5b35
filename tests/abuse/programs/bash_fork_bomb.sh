ulimit -u 200 2>/dev/null
until ((SECONDS > 60)); do
  bash -c "$(cat "$0")" & 
  sleep 60 &
done
