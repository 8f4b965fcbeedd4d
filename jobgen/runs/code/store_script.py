"""The script that stores contents on a host, and makes the code of a run from them."""

import shlex

# The variables store, directory (of the run), token, need (KiB of the copies) and unpack are set before it.
_SCRIPT = r"""
umask 077
export LC_ALL=C EXTRACT_UNSAFE_SYMLINKS=1
own=$store/incoming/$token
message=
trap 'cd /; rm -rf "$own"' EXIT
trap 'exit 1' HUP INT TERM
trap '' PIPE
failed() {
    printf 'failed %s\n' "$1"
    free
    printf '%s\n' "$message" | tail -n 1
    exit 0
}
leave() {  # removing links takes some file systems longer than all the rest
    trap - EXIT
    rm -rf "$own" > /dev/null 2>&1 &
    exit 0
}
try() { message=$("$@" 2>&1) || failed "$1"; }
free() {
    df -Pk "$directory" 2> /dev/null | awk '
        NR == 2 { for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]+%$/) { print "free " $(i - 1); exit } }'
}
[ "$unpack" = cat ] || command -v gzip > /dev/null || { printf 'plain\n'; exit 0; }
try mkdir -p "$store/objects" "$own"
cd "$own" || failed cd
find "$store/incoming" ! -name incoming -prune -mtime +1 -exec rm -rf {} + 2> /dev/null
try mkdir objects tree links

message=$({ $unpack | tar -xomf -; } 2>&1)
unpacked=$?
case $unpacked$message in
0*) ;;
*[Ss]pace* | *[Qq]uota*) failed space ;;
esac
unpacking=$message
cd objects || failed cd
if command -v sha256sum > /dev/null; then sum=sha256sum
elif command -v shasum > /dev/null; then sum='shasum -a 256'
elif command -v openssl > /dev/null; then sum='openssl dgst -sha256 -r'
else sum=
fi
if [ -z "$sum" ]; then
    [ "$unpacked" = 0 ] || failed tar
else
    message=$(find . -type f -exec $sum {} + 2>&1 > ../sums) || failed sum
    message=$(awk '
        { sub(/^\*/, "", $2); name = $2; gsub(/[.\/]/, "", name); if (name != $1) print $2 }
    ' ../sums 2>&1 > ../bad) || failed awk
    while read -r name; do rm -f "$name"; done < ../bad
fi
for part in ??; do
    [ -d "$part" ] || continue
    try mkdir -p "$store/objects/$part"
    for name in "$part"/*; do
        [ ! -f "$name" ] || try mv -f "$part"/* "$store/objects/$part/"
        break
    done
done
cd ..
message=$unpacking
[ "$unpacked" = 0 ] || failed tar
message=$(find -L tree -type l -exec printf 'lacking %s\0' {} + 2>&1 > lacking) || failed find
if [ -s lacking ]; then
    free
    cat lacking
    leave
fi

available=$(free)
available=${available#free }
[ "${available:-$need}" -ge "$need" ] || failed space
# Another call may replace an object by itself meanwhile, and cp then ends.
cp -RL tree "$token" 2> /dev/null || { rm -rf "$token"; try cp -RL tree "$token"; }
try cp -RP links/. "$token/"
cd "$token" || failed cd
try . ../executable
cd ..
try rm -rf "$directory/code"
# Another call may make the folder meanwhile: mv fails then, or moves this one into it.
mv "$token" "$directory/code" 2> /dev/null || try mv "$token" "$directory/code"
rm -rf "$directory/code/$token"
printf 'made\n'
leave
"""


def store_script(runs: str, directory: str, token: str, need: int, compressed: bool) -> str:
    """Return the script for the folder of all runs, and for the directory of one.

    Its input is the archive of archive.py. ``token`` is a name that no other call uses; ``need`` is the
    size of the copies in KiB.

    It prints ``made``; or ``plain`` if the host cannot decompress; or ``failed`` with a step and the last
    message; or for each link without an object ``lacking``, its path and a NUL. The free space, ``free`` and
    KiB, comes before the messages and the paths.
    """
    variables = {
        "store": f"{runs}/.store",
        "directory": directory,
        "token": token,
        "need": str(need),
        "unpack": "gzip -dc" if compressed else "cat",
    }
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items()) + _SCRIPT
