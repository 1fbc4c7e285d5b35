for port in 22 80 443 2375 50051 50052 50053; do
  (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && echo "ESCAPED connected to $port"
done
(exec 3<>/dev/udp/127.0.0.1/53; echo x >&3) 2>/dev/null && echo "ESCAPED sent a datagram"
exit 1
