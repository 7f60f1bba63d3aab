# A clock that steps, in the variant that has one: that of the machine's PostgreSQL.
mkdir -p {self.directory}/bin
for program in {postgres.bin}/*; do
  own={self.directory}/bin/$(basename $program)
  printf '#!/bin/sh\n' >$own
  if [ -n "{preload}" ] && [ $(basename $program) = postgres ]; then
    echo "export LD_PRELOAD={preload} FAKETIME_TIMESTAMP_FILE={self.directory}/clock FAKETIME_CACHE_DURATION=1 DONT_FAKE_MONOTONIC=1" >>$own
  fi
  printf 'exec %s "$@"\n' $program >>$own
  chmod +x $own
done
exec /usr/bin/python3 {packages.directory}/usr/bin/patroni patroni.yml
