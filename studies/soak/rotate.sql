SELECT rotate();
\sleep 500 ms
