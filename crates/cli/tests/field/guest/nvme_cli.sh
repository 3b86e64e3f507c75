# Goes on after begin.sh: runs each of nvme-cli's own tests on the drive. They sleep for five seconds
# after each reset, of which one of them has hundreds: here it is a twentieth.

run() {
    python3 -S -c "
import sys, time, unittest
sleep = time.sleep
time.sleep = lambda seconds: sleep(seconds / 20)
unittest.main(module=None, argv=['unittest', '-v', sys.argv[1]])
" "$1"
}

while [ ! -b /dev/nvme0n1 ]; do sleep 0.1; done
cd / || exit
export PYTHONPATH=/tests PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
while read -r name; do
    say "$name" run "${name}_test"
done < /etc/tests
say messages dmesg
echo "guest: done"
sleep 1000
