//! Lines that make bash run a command in ways that are easy to miss.

/// Each of them runs `touch m`.
pub(super) const HIDING_LINES: &[&str] = &[
    r##"printf -v 'a[$(touch m)]' x"##,
    r##"printf -v'a[$(touch m)]' x"##,
    r##"test -v 'a[$(touch m)]'"##,
    r##"[ -v 'a[$(touch m)]' ]"##,
    r##"[ ! -v 'a[$(touch m)]' ]"##,
    r##"[ x = x -a -v 'a[$(touch m)]' ]"##,
    r##"[[ -v 'a[$(touch m)]' ]]"##,
    r##"[[ -v a[$(touch m)] ]]"##,
    r##"x='a[$(touch m)]'; [[ -v $x ]]"##,
    r##"read 'a[$(touch m)]' <<< x"##,
    r##"declare 'a[$(touch m)]=1'"##,
    r##"typeset 'a[$(touch m)]=1'"##,
    r##"f() { local 'a[$(touch m)]=1'; }; f"##,
    r##"declare -a 'a=([$(touch m)]=1)'"##,
    r##"declare -a 'a=($(touch m))'"##,
    r##"declare -A 'a=([$(touch m)]=1)'"##,
    r##"readonly -a 'a=($(touch m))'"##,
    r##"declare -i x='a[$(touch m)]'"##,
    r##"declare -i x; x='a[$(touch m)]'"##,
    r##"declare -ai x; x=('a[$(touch m)]')"##,
    r##"a=1; unset 'a[$(touch m)]'"##,
    r##"a=(1); unset 'a[$(touch m)]'"##,
    r##"let 'a[$(touch m)]=1'"##,
    r##"(( a[$(touch m)] ))"##,
    r##"x='a[$(touch m)]'; echo ${!x}"##,
    r##"x='a[$(touch m)]'; echo $((x))"##,
    r##"x='$(touch m)'; echo "${x@P}""##,
    r##"mapfile -C 'touch m;' -c 1 x <<< y"##,
    r##"sleep 0 & wait -n -p 'a[$(touch m)]'"##,
    r##"sleep 0 & wait -p 'a[$(touch m)]' $!"##,
    r##"compgen -C 'touch m'"##,
    r##"compgen -W '$(touch m)'"##,
    r##"trap 'touch m' EXIT"##,
    r##"trap 'touch m' DEBUG; true"##,
    r##"PROMPT_COMMAND='touch m' bash -i"##,
    r##"declare -n r='a[$(touch m)]'; echo $r"##,
    r##"declare -n r='a[$(touch m)]'; r=1"##,
    r##"BASH_ENV=<(echo touch m) bash -c true"##,
    r##"BASH_ENV='$(touch m)' bash -c true"##,
    r##"ENV='$(touch m)' sh -i -c true"##,
    r##"ENV='$(touch m)' bash --posix -ic true"##,
    r##"PS4='$(touch m)'; set -x; true"##,
    r##"env 'BASH_FUNC_true%%=() { touch m; }' bash -c true"##,
    r##"bash --rcfile <(echo touch m) -ic true"##,
    r##"exec {a[$(touch m)]}>/dev/null"##,
    r##"true {a[$(touch m)]}>/dev/null"##,
    r##"[[ 'a[$(touch m)]' -eq 0 ]]"##,
    r##"x='a[$(touch m)]'; [[ $x -eq 0 ]]"##,
    r##"x='a[$(touch m)]'; [[ x -eq 0 ]]"##,
    r##"x='a[$(touch m)]'; [[ 1 -lt $x ]]"##,
    r##"x='a[$(touch m)]'; echo ${a[x]}"##,
    r##"x='a[$(touch m)]'; a[x]=1"##,
    r##"x='a[$(touch m)]'; a=([x]=1)"##,
    r##"x='a[$(touch m)]'; a=(["x"]=1)"##,
    r##"a=(['a[$(touch m)]']=1)"##,
    r##"x='a[$(touch m)]'; a=([$x]=1)"##,
    r##"x='a[$(touch m)]'; a+=([x]=1)"##,
    r##"declare -a a=([x]=1) x='a[$(touch m)]'; declare -a b=([x]=1)"##,
    r##"echo ${a['$(touch m)']}"##,
    r##"echo "${a['x[$(touch m)]']}""##,
    r##"x='touch m'; $x"##,
    r##"hash -p /bin/touch ls; ls m"##,
    r##"exec -c touch m"##,
    r##"command -p touch m"##,
    r##"builtin command touch m"##,
    r##"history -s 'touch m'; fc -s"##,
    r##"echo 'touch m' | source /dev/stdin"##,
    r##". <(echo touch m)"##,
    r##"RANDOM='a[$(touch m)]'"##,
    r##"OPTIND='a[$(touch m)]'"##,
    r##"HISTCMD='a[$(touch m)]'"##,
    r##"for RANDOM in 'a[$(touch m)]'; do :; done"##,
    r##"read RANDOM <<< 'a[$(touch m)]'"##,
    r##"set -- 'a[$(touch m)]'; echo $(($1))"##,
    r##"case $((a[$(touch m)])) in esac"##,
    r##"pushd +a[$(touch m)]"##,
    r##"IFS=,; x=touch,m; $x"##,
    r##"time -p touch m"##,
    r##"source /dev/fd/3 3<<< 'touch m'"##,
    r##"bash /dev/fd/3 3<<< 'touch m'"##,
    r##"a=(1); declare 'a=($(touch m))'"##,
    r##"a=(1); x='($(touch m))'; declare a=$x"##,
    r##"x='($(touch m))'; declare -a a=$x"##,
    r##"x='($(touch m))'; declare -a "a=$x""##,
    r##"f() { local -a a=$x; }; x='($(touch m))'; f"##,
    r##"echo $(( $(echo 'a[$(touch m)]') ))"##,
    r##"x='a[$(touch m)]=1'; declare "$x""##,
    r##"x='a[$(touch m)]'; echo $((x = x))"##,
    r##"for ((i=0; i<1; i++)); do i='a[$(touch m)]'; done"##,
    r##"x='a[$(touch m)]'; echo $((0 && (x=1), x))"##,
    r##"unset PS4; : ${PS4:='$(touch m)'}; set -x; true"##,
    r##"printf -v PS4 '%s' '$(touch m)'; set -x; true"##,
    r##"read -r PS4 <<< '$(touch m)'; set -x; true"##,
    r##"for PS4 in '$(touch m)'; do set -x; true; done"##,
    r##"x='. -maxdepth 0 -exec touch m ;'; find $x"##,
    r##"T='5 touch m'; timeout $T"##,
    r##"echo 'touch m' | bash 3<<< true"##,
    r##"timeout --kill 5 10 touch m"##,
    r##"env --split='touch m'"##,
    r##"awk 'BEGIN { system("touch m") }'"##,
    r##"sed -n '1e touch m' /etc/passwd"##,
    r##"sed 's/.*/touch m/e' /etc/passwd"##,
    r##"sed -n ':a;1e touch m' /etc/passwd"##,
    r##"cp /etc/passwd p; sed -i.l '1e touch m' p"##,
    r##"cp /etc/passwd p; sed -i.f '1e touch m' p"##,
    r##"tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='touch m' /etc/passwd"##,
    r##"tar cf /dev/null --checkpoint=1 --checkpoint-act=exec='touch m' /etc/passwd"##,
    r##"tar cf x.tar -I 'touch m;' /etc/passwd"##,
    r##"split --filter='touch m' /etc/passwd"##,
    r##"make --eval '$(shell touch m)' x"##,
    r##"make -f /dev/null --eval='x:;touch m' x"##,
    r##"git -c alias.p='!touch m' p"##,
    r##"GIT_EXTERNAL_DIFF='touch m;:' git diff --no-index --ext-diff /etc/passwd /etc/group"##,
    r##"ssh -o ProxyCommand='touch m' nohost"##,
    r##"ssh -oProxyCommand='touch m' nohost"##,
    r##"python3 -c 'import os; os.system("touch m")'"##,
    r##"perl -e 'system("touch m")'"##,
    r##"perl -ne 'system("touch m")' /etc/passwd"##,
    r##"echo 'import os; os.system("touch m")' | python3"##,
    r##"python3 <<< 'import os; os.system("touch m")'"##,
    r##"vim -es -c '!touch m' -c q"##,
    r##"shopt -s expand_aliases; eval "alias l='touch m'"; eval l"##,
    r##"a=([$(touch m)0]=1)"##,
    r##"x='a[$(touch m)]'; test -v "$x""##,
    r##"x=abc; echo "${x:$(echo 'a[$(touch m)]')}""##,
    r##"a[$(echo 'a[$(touch m)]')]=1"##,
    r##"exec 3< <(echo touch m); . /dev/fd/3"##,
    r##". /proc/self/fd/0 <<< 'touch m'"##,
    r##"trap -- 'touch m' 0"##,
    r##"x='touch m' bash -c '$x'"##,
    r##"set -- touch m; "$@""##,
    r##"x='a[$(touch m)]'; echo "${!x:-}""##,
    r##"f() { echo "${!1}"; }; f 'a[$(touch m)]'"##,
    r##"echo | xargs touch m"##,
    r##"echo touch m | xargs -I{} bash -c '{}'"##,
    r##"bash -O extglob -c 'touch m'"##,
    r##"bash -o posix +x -c 'touch m'"##,
    r##"find . -maxdepth 0 -exec touch m \;"##,
    r##"xargs -a /dev/null touch m"##,
    r##"command -- touch m"##,
    r##"exec -- touch m"##,
    r##"env -- touch m"##,
    r##"env -C . -- touch m"##,
    r##"env -vS'touch m'"##,
    r##"nice -n5 -- touch m"##,
    r##"\touch m"##,
    r##"{touch,m}>/dev/null"##,
    r##"env 'A b=c' touch m"##,
    r##"BASH_CMDS[ls]=/bin/touch; ls m"##,
    r##"SRANDOM='a[$(touch m)]'"##,
    r##"sed -E '1e touch m' /etc/passwd"##,
    r##"sed -n -l 5 '1e touch m' /etc/passwd"##,
    r##"sed -n -f - /etc/passwd <<< '1e touch m'"##,
    r##"sed -nf <(echo '1e touch m') /etc/passwd"##,
    r##"sed -n p /etc/passwd -e '1e touch m'"##,
    r##"sed -n p {-e,1e\ touch\ m} /etc/passwd"##,
    r##"awk -f /dev/stdin <<< 'BEGIN { system("touch m") }'"##,
    r##"tar cIf 'touch m;' x.tar /etc/passwd"##,
    r##"GIT_ALLOW_PROTOCOL=ext git ls-remote 'ext::touch m'"##,
    r##"git init -q .; git fetch-pack --upload-pack='touch m;' "$PWD" x"##,
    r##"git init -q; git config user.name '!touch m'; git config --rename-section user alias; git name"##,
    r##"python3 -m timeit 'import os; os.system("touch m")'"##,
    r##"python3 -Im timeit 'import os; os.system("touch m")'"##,
    r##"python3 -mcode <<< 'import os; os.system("touch m")'"##,
    r##"python3 -m runpy timeit 'import os; os.system("touch m")'"##,
    r##"python3 /dev/stdin <<< 'import os; os.system("touch m")'"##,
    r##"python3 --check-hash-based-pycs always -c 'import os; os.system("touch m")'"##,
    r##"perl /dev/stdin <<< 'system("touch m")'"##,
    r##"x=-exec; find . -maxdepth 0 "$x" touch m \;"##,
    r##"find . -maxdepth 0 {-exec,touch,m,\;}"##,
    r##"timeout {5,touch,m} ls"##,
    r##"x='C touch m'; env LANG=$x ls"##,
    r##"bash -login -c 'touch m'"##,
    r##"source -- /dev/stdin <<< 'touch m'"##,
    r##"make -f - <<< 'x:;touch m'"##,
    r##"make -f <(echo 'x:;touch m')"##,
    r##"MAKEFILES=/dev/stdin make -f /dev/null x <<< 'x:;touch m'"##,
    r##"cat <<"$x"
a
$x
touch m"##,
    r##"x=-v; [ ! "$x" 'a[$(touch m)]' ]"##,
    r##"x=-p; hash "$x" /bin/touch ls; ls m"##,
    r##"x=-C; compgen "$x" 'touch m'"##,
    r##"x=-k5; timeout "$x" 5 touch m"##,
    r##"x=-c; git "$x" alias.x='!touch m' x"##,
    r##"PS4='$'; PS4+='(touch m)'; set -x; :"##,
    r##"set -a; MAKEFLAGS='--eval=x:;touch\ m'; make -f /dev/null x"##,
    r##"echo "$\
(touch m)""##,
    r##"c='touch m'; $\
c"##,
    r##"$\
'touch' m"##,
    r##"A\
=1 touch m"##,
    r##"echo "${x:-$\
(touch m)}""##,
    r##"PS\
4='$(touch m)'; set -x; ls"##,
    r##"PS4='$\
(touch m)'; set -x; ls"##,
    r##"x='a[$(touch m)]'; (\
(x))"##,
    r##"x='a[$(touch m)]'; ((x)\
)"##,
    r##"x='a[$(touch m)]'; echo $(\
(x))"##,
    r##"x='a[$(touch m)]'; echo $[\
x]"##,
    r##"x='a[$(touch m)]'; [\
[ $x -eq 1 ]]"##,
    r##"x='a[$(touch m)]'; [[ $x -e\
q 1 ]]"##,
    r##"x='a[$(touch m)]'; echo ${\
!x}"##,
    r##"x='$(touch m)'; echo ${x@\
P}"##,
    r##"x='$(touch m)'; echo "$\
{x@P}""##,
    r##"if true; then\
 touch m; fi"##,
    r##"i\
f true; th\
en touch m; fi"##,
    r##"ls |\
| touch m; ls &\
& touch m"##,
    r##"cat <\
(touch m)"##,
    r##"cat @(<\
(touch m))"##,
    r##"case b in a) ls ;\
; b) touch m;; esac"##,
    r##"echo `cat <<'E'
E\

touch m
E
`"##,
    r##"echo `cat <<'E'
 \
E
: '
E
touch m
: '`"##,
    r##"eval 'echo $\
(touch m)'"##,
    r##"bash -c 'echo $\
(touch m)'"##,
    r##"cat <<E
E\

touch m
E"##,
    r##"cat <<-E
	E\

touch m
E"##,
    r##"{ cat <<E; }
E\

touch m
E"##,
    r##"cat <<E
 \
E
: '
E
touch m
: '"##,
    r##"cat <<E\
F
$(touch m)
EF"##,
    r##"cat <<E\
 F
$(touch m)
E"##,
    r##"cat <<E
$\
(touch m)
E"##,
    r##"cat <<E
$\
{x:-$(touch m)}
E"##,
    r##"cat <<\
-E
	E
touch m"##,
    r##"x=$(cat <<E
foo
E)
touch m
E
)"##,
    r##"x=$(cat <<E
foo
E foo)
touch m
E
)"##,
    r##"cat <(cat <<E
foo
E)
touch m
E
)"##,
    r##"cat $(cat <<E)
$(touch m)
E"##,
    r##"cat <<E; [[ a &&
E
b ]]
touch m
E"##,
    r##"[[ a && # '
b ]]; touch m #' ]]"##,
    r##"echo a | sed ':x
t x e touch m'"##,
    r##"echo a | sed -s ':x
/a/!b x e touch m
t x e touch m'"##,
    r##"echo a | sed --expression=':x
s/a/b/
T x e touch m'"##,
    r##"echo a | sed ':x;t x	e touch m'"##,
    r##"echo a | sed 't\
e touch m
:\'"##,
    r##"echo a | sed 's/a/touch m/w /dev/stdout
s/.*/touch m/e'"##,
    r##"echo a | sed 's/a/touch m/me'"##,
    r##"echo a | sed 'a foo\
y/
e touch m
#/a/'"##,
    r##"echo a | sed 'a
e touch m'"##,
    r##"echo a | sed 'r /dev/null
1e touch m'"##,
    r##"echo a | sed 'v
e touch m'"##,
    r##"echo a | sed '\nanetouch m'"##,
    r##"echo a | sed 'R /dev/null
/a/,/b/Ie touch m'"##,
    r##"bash -oo posix nounset -c 'touch m'"##,
    r##"bash -eoo posix nounset -c 'touch m'"##,
    r##"bash -oe posix -c 'touch m'"##,
    r##"bash -c - 'touch m'"##,
    r##"bash + -c 'touch m'"##,
    r##"bash -O extglob -oc posix 'touch m'"##,
    r##"echo > -c; bash -? 'touch m'"##,
    r##"env -S 'touch\_m'"##,
    r##"env -S 'touch m\c x'"##,
    r##"env -S '"touch" m'"##,
    r##"env -S'-S "touch m"'"##,
    r##"x=touch env -S '${x} m'"##,
    r##"bash <<<ls 00<<<'touch m'"##,
    r##"bash <<<ls 3<<<'touch m' 0>&3"##,
    r##"bash <<<ls 3<<<'touch m' 00>&3"##,
    r##"bash <<<ls 3<<<'touch m' 0<&3-"##,
    r##"env -S 'timeout\_5\_touch\_m'"##,
    r##"env -S 'timeout
5
touch
m'"##,
    r##"x='posix -c'; bash -o $x 'touch m'"##,
    r##"export -p ABC='touch m'; echo '$ABC' > x.sh; bash x.sh"##,
    r##"readonly -pa 'x=($(touch m))'"##,
    r##"readonly -pA 'x=([$(touch m)]=1)'"##,
    r##"export -np PS4='$(touch m)'; set -x; :"##,
    r##"readonly -p PS4='$(touch m)'; set -x; :"##,
    r##"declare +f PS4='$(touch m)'; set -x; :"##,
    r##"echo '. -maxdepth 0 -exec touch m ;' | xargs find"##,
    r##"echo '. -maxdepth 0 -exec touch m ;' | xargs -n 9 find"##,
    r##"echo '. -maxdepth 0 -exec touch m ;' | xargs -I{} -n 9 find"##,
    r##"echo 'cf /dev/null --checkpoint=1 --checkpoint-action=exec=touch\ m /etc/passwd' | xargs tar"##,
    r##"echo '--checkpoint=1 --checkpoint-action=exec=touch\ m /etc/passwd' | xargs tar cf /dev/null"##,
    r##"echo '-S 1b --compress-program=./x /etc/services' | (echo 'touch m' > x; chmod +x x; xargs sort)"##,
    r##"echo > -exec; echo > touch; echo > ';'; find . -maxdepth 0 -exe? touc? m ?"##,
    r##"echo > -exec; find . -maxdepth 0 -e* touch m \;"##,
    r##"x=';'; find . -maxdepth 0 -exec ls "$x" -exec touch m \;"##,
    r##"x=';'; y=-exec; find . -maxdepth 0 -exec ls "$x" "$y" touch m \;"##,
    r##"echo > ';'; find . -maxdepth 0 -exec ls ? -exec touch m \;"##,
    r##"echo a > x; printf '!touch m\nq\n' | ed -s x"##,
    r##"echo a > x; printf '!touch m\nq!\n' | ex -s x"##,
    r##"echo a > x; printf ':!touch m\n:q!\n' | vim -es x"##,
    r##"echo a > x; printf ':!touch m\n:q!\n' | vi -e -s x"##,
    r##"echo a > x; printf ':!touch m\n:q!\n' | vim x"##,
    r##"gdb x <<< '!touch m'"##,
    r##"python3 -i /dev/null <<< 'import os; os.system("touch m")'"##,
    r##"echo 1 > x; perl -d x <<< 'system("touch m")'"##,
    r##"strace -o '|touch m' true"##,
    r##"strace -o'!touch m' true"##,
    r##"strace --output='|touch m' true"##,
    r##"strace -fo '|touch m' true"##,
    r##"x='|touch m'; strace -o "$x" true"##,
    r##"jobs -x touch m"##,
    r##"jobs -xl touch m"##,
    r##"set -o history; history -s 'touch m'
set -H
!touch"##,
    r##"set -o history -o histexpand; history -s 'touch m'
!touch"##,
    r##"set -o history; history -s 'touch m'
shopt -so histexpand
!touch"##,
    r##"set -k; make -f /dev/null x MAKEFLAGS='--eval=x:;touch\ m'"##,
    r##"set -k; bash -c true BASH_ENV=<(echo touch m)"##,
    r##"bash -kc 'bash -c true BASH_ENV=<(echo touch m)'"##,
    r##"shopt -so allexport; MAKEFLAGS='--eval=x:;touch\ m'; make -f /dev/null x"##,
    r##"bash -ac 'MAKEFLAGS="--eval=x:;touch\ m"; make -f /dev/null x'"##,
    r##"bash -i +O interactive_comments -c 'ls # ; touch m'"##,
    r##"x=-H; set -o history; history -s 'touch m'
set $x
!touch"##,
    r##"sh +c 'touch m'"##,
    r##"python3 -m doctest /dev/stdin <<< '>>> import os; os.system("touch m")'"##,
    r##"perl -n /dev/null 'touch m|'"##,
    r##"setarch x86_64 touch m"##,
    r##"source /dev/./stdin <<< 'touch m'"##,
    r##"source //dev//stdin <<< 'touch m'"##,
    r##"d=$PWD; cd /dev; source ./stdin <<< "touch $d/m""##,
    r##"d=$PWD; cd /dev; . fd/0 <<< "touch $d/m""##,
    r##"d=$PWD; cd /dev/fd; bash 0 <<< "touch $d/m""##,
    r##"bash /dev/./fd/0 <<< 'touch m'"##,
    r##"bash ~/../../../../../../dev/stdin <<< 'touch m'"##,
    r##"python3 /dev/./stdin <<< 'import os; os.system("touch m")'"##,
    r##"awk -f /dev/./stdin <<< 'BEGIN { system("touch m") }'"##,
    r##"make -f /dev/./stdin <<< 'x:;touch m'"##,
    r##"bash /dev/fd/3 3<<< 'touch m' <<< ls"##,
    r##"source /dev/fd/3 3<<< 'touch m' <<< ls"##,
    r##"bash /proc/self/fd/3 3<<< 'touch m' <<< ls"##,
    r##"ssh-agent touch m"##,
    r##"newgrp <<< 'touch m'"##,
    r##"ld.so /bin/touch m"##,
    r##"/lib64/ld-linux-x86-64.so.2 /bin/touch m"##,
    r##"perf stat -r 1 touch m"##,
    r##"valgrind -q --tool=none touch m"##,
];
