# Goes on after begin.sh: connects to a modelled drive that the test serves over NVMe/TCP, reviews
# it, and prints the result. The kernel's command line has the subsystem and the port.
export HOME=/tmp

review() {
    floatgate review /dev/nvme0n1 --protocol /etc/protocol.toml --destroy > /tmp/said 2>&1
    ended=$?
    cat /tmp/said
    return $ended
}

# Linux 6.12 sends a command in the thread that submits it, if it runs on the processor of the queue.
# With one processor and several threads, commands that others submit meanwhile then wait for the
# next reply, each one: of 64 writes, one to eight reached the drive at a time. Where the workers of
# the driver are bound to no processor, they alone send.
echo Y > /sys/module/nvme_tcp/parameters/wq_unbound
# A queue for all that a protocol keeps outstanding: by default it has 128 entries.
say connect nvme connect -t tcp -a 10.0.2.2 -s "$port" -n "$subsystem" --queue-size=1024
while [ ! -b /dev/nvme0n1 ]; do sleep 0.1; done
cd /tmp || exit
say review review
say result cat runs/*/run.json
echo "guest: done"
sleep 1000
