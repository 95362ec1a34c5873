#!/bin/sh
# scratch.sh PROGRAM FOLDER: lays out the files of an image that has the program, the shared
# libraries that it names, and a user; see Containerfile.scratch.
set -eu
umask 022 # the folders and libraries are for the image's user

program=$1
folder=$2
root=$folder/root

rm -rf "$root" "$folder/data" "$folder/tmp"
mkdir -p "$root/usr/bin" "$root/etc" "$folder/data" "$folder/tmp"
install -m 755 "$program" "$root/usr/bin/snowmelt"

# `ldd` prints "NAME => PATH (ADDRESS)", and the loader as "PATH (ADDRESS)". Each library goes to
# the path where the loader looks for it.
ldd "$program" | awk '$2 == "=>" { print $3 } $1 ~ "^/" { print $1 }' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    install -m 755 "$library" "$root$library"
done

echo 'snowmelt:x:7878:7878::/data:/sbin/nologin' > "$root/etc/passwd"
echo 'snowmelt:x:7878:' > "$root/etc/group"
# A folder that is empty is left out by some builders.
touch "$folder/data/.keep" "$folder/tmp/.keep"
