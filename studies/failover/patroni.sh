# A clock that steps, in the variant that has one: that of all processes of the machine.
if [ -n "{preload}" ]; then
  echo +0 >{self.directory}/clock
  export LD_PRELOAD={preload} FAKETIME_TIMESTAMP_FILE={self.directory}/clock FAKETIME_CACHE_DURATION=1 DONT_FAKE_MONOTONIC=1
  export PYTHONPATH="$PWD:$PYTHONPATH"
fi
exec /usr/bin/python3 {packages.directory}/usr/bin/patroni patroni.yml
