#!/bin/sh
# lfs-fetch against a server that misbehaves: each fault has its outcome.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lfs.sh
. "$here/lfs.sh"

# an authority of our own, and a certificate for two loopback names
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=test authority' \
    -keyout ca.key -out ca.pem >/dev/null 2>&1
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout tls.key \
    -out tls.csr >/dev/null 2>&1
echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' >san
openssl x509 -req -in tls.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
    -days 2 -extfile san -out tls.pem >/dev/null 2>&1
CURL_CA_BUNDLE=$T/ca.pem
export CURL_CA_BUNDLE
serve slow
slow_url=$url
serve srv tls.pem tls.key
oid=$(object 300000)
pointer "$oid" >p
tlsport=${tls##*:}

# ends CASE STATUS MESSAGE [OPTION]...: a run against one endpoint, three
# tries. Status 0: the object came, else nothing has the final name.
ends() {
	case=$1 want=$2 message=$3; shift 3
	rm -rf store got; : >srv/log
	run lfs-fetch -S store -H 127.0.0.1 -t 3 "$@" -e "$url/$case" -o got <p
	exits "$want" "$case: status $want"
	if [ "$want" -eq 0 ]; then same got "srv/$oid" "$case: the object"
	else absent got "$case: nothing under the final name"; fi
	if [ -n "$message" ]; then says "^lfs-fetch: $message" "$case: said"
	else is "$(grep -v '^got: [0-9]*%' "$err")" '' "$case: no noise"; fi
}
# what a last line begins with
at="$oid got: (lost at|not fetched from) 127.0.0.1:$port"

# what takes its time runs beside the rest, on a server of its own: a line
# every ten seconds where there is no terminal, and what waits for its bound
cp "srv/$oid" slow/
slow=$(object 8000000)
pointer "$slow" >pslow
mv "srv/$slow" slow/
lfs-fetch -S snail -H 127.0.0.1 -e "$slow_url/snail" -o snail-got <pslow \
    2>snail.err & snail=$!
lfs-fetch -q -S snail2 -H 127.0.0.1 -e "$slow_url/snail" -o snail-got2 \
    <pslow 2>snail2.err & snail2=$!
for c in stall stalled loris; do
	(lfs-fetch -S "$c" -H 127.0.0.1 -t 2 -w 2 -e "$slow_url/$c" \
	    -o "$c-got" <p 2>$c.err; echo $? >$c.status) &
done

# ---- resume ----
ends cut 0 ''
is "$(gets "GET .*range=bytes=150000-299999 ")" 1 'cut: resumed where it was cut'
ends norange 0 ''
is "$(gets GET)" 2 'norange: 200 instead of 206 starts over, in that answer'
ends unrange 0 ''
is "$(gets GET)" 3 'unrange: 416 starts over'
ends badrange 0 ''
is "$(gets GET)" 3 'badrange: another range starts over'
ends norangeheader 0 ''
ends spoiltpart 0 ''
is "$(gets GET)" 3 'spoiltpart: a wrong mixture starts over'
ends short 111 "$at \\(.*tried 3 times\\)"
ok 'short: what came is kept for the next run' test -s "store/incomplete/$oid.part"
ends chunked 0 ''
large=$(object 4000000)
pointer "$large" >plarge
run lfs-fetch -S store -H 127.0.0.1 -t 2 -e "$url/churn" <plarge
exits 111 'churn: a spoilt half for ever comes to an end'
ok 'churn: after few requests' test "$(gets 'GET /churn')" -le 6

# ---- wrong bodies ----
ends wrong 1 "$at \\(wrong bytes\\)"
says "sha256 from 127.0.0.1:$port is [0-9a-f]{64}, the body is kept as store/incomplete/$oid.bad" \
    'wrong: digest and place of the body'
is "$(gets GET)" 1 'wrong: no second try'
ok 'wrong: the body is kept for a look' test -s "store/incomplete/$oid.bad"
for c in notfound long endless; do
	ends $c 1 "$at \\(a body of another size, wanted 300000 bytes\\)"
	is "$(find store -type f)" '' "$c: nothing is kept"
	is "$(gets GET)" 1 "$c: no second try"
done

# ---- refusals ----
ends gone 1 "$at \\(404: no such repository\\)"
ends o404 1 "$at \\(404: Object does not exist\\)"
ends o410 1 "$at \\(410: removed\\)"
ends o422 1 "$at \\(422: invalid\\)"
ends removed 1 "$at \\(410\\)"
ends teapot 1 "$at \\(418\\)"
ends forbidden 1 "$at \\(403: not yours\\)"
for c in quota quota403 quotaload; do
	ends $c 111 "$at \\((509: bandwidth|403: .*quota)"
	is "$(gets .)" "$(case $c in quotaload) echo 2;; *) echo 1;; esac)" \
	    "$c: holds for this endpoint, no second try"
done
ends forbidden-load 1 "$at \\(403\\)"
is "$(gets POST)" 2 'forbidden-load: asked once more for a link'
ends expired 0 ''
is "$(gets POST)" 2 'expired: a new link'
ends expires-at 0 ''
is "$(gets POST)" 2 'expires-at: a new link before a download is tried'
ends expires-zero 0 ''
is "$(gets POST)" 1 'expires-zero: the year 1 is no date'

# ---- passing failures ----
ends busy 0 ''
ends o503 0 ''
ends busyload 0 ''
ends down 111 "$at \\(503, tried 3 times\\)"
is "$(gets POST)" 3 'down: three tries'
now=$(date +%s)
ends limit-seconds 0 "$url/limit-seconds: 429: slow down, trying again in 2 s \\(try 2 of 3\\)"
ends limit-date 0 "$url/limit-date: 429: slow down, trying again in [23] s"
ends limitload 0 "$oid got: 429, trying again in 2 s \\(try 2 of 3\\)"
ok 'Retry-After is waited for' test $(($(date +%s) - now)) -ge 5
ends limit-past 0 '' -t 5
run lfs-fetch -t 2 -H 127.0.0.1 -e http://127.0.0.1:1/x <p
exits 111 'nobody listens: status 111'
says 'not fetched from 127.0.0.1:1 \(.*onnect.*, tried 2 times\)' 'nobody listens: said'
run lfs-fetch -t 1 -H no.invalid -e https://no.invalid/x <p
exits 111 'no such host: status 111'

# ---- answers that are no answers ----
ends long-json 111 "$at \\(the answer is too long\\)"
ends endless-json 111 "$at \\(the answer is too long\\)"
ends not-json 111 "$at \\(the answer is not JSON: line 1"
ends empty 111 "$at \\(the answer is not JSON"
ends no-list 111 "$at \\(the answer has no list of objects\\)"
ends no-action 111 "$at \\(no download action and no error\\)"
ends not-there 111 "$at \\(not in the answer\\)"
ends sha512 111 "$at \\(hash_algo is \"sha512\", wanted sha256\\)"
ends other-transfer 111 "$at \\(transfer is \"tus\", wanted basic\\)"
ends other-size 111 "$at \\(its size there is 300001, wanted 300000\\)"
ends hostile 0 ''
is "$(gets 'GET /ok')" 1 'hostile: the object alone is fetched'
for c in file-href ftp-href; do
	ends $c 111 "$at \\(download action refused: not https\\)"
done
ends http-href 111 "$at \\(download action refused: href is not https\\)"
ends split-href 111 "$at \\(download action refused: not a URL\\)"
ends split-header 111 "$at \\(download action refused: a header that HTTP does not allow\\)"
ends own-range 0 ''
is "$(gets 'GET .*range=- secret=kept .*host=127')" 1 'own-range: only harmless headers are sent'

# ---- redirects ----
ends moved 0 ''
ends loop 111 "$at \\(more than 5 redirects\\)"
ends loopload 111 "$at \\(more than 5 redirects\\)"
ends nowhere 111 "$at \\(302 without a location\\)"
ends fileload 111 "$at \\(redirected to no https URL\\)"
ends away 111 "$at \\(redirected to evil.invalid, which is not on the list of hosts \\(-H\\)\\)"
ends redirect 0 ''
is "$(gets 'GET /ok.*secret=opensesame')" 1 'redirect: on the same host the headers go along'
ends cross 0 ''
is "$(gets 'GET /cross.*secret=opensesame')" 1 'cross: the first host gets the secret'
is "$(gets 'GET /(back|ok).*secret=-')" 2 'cross: it does not arrive at another, nor come back'
# the same over https, with our own authority
secure() { run lfs-fetch -S tls -H 127.0.0.1 -t 1 -e "$tls/$1" <p; }
: >srv/log
secure ok; exits 0 'https with an own authority'
same "$out" "srv/$oid" 'https: the object'
rm -rf tls; secure cross; exits 0 'https: across hosts'
is "$(gets 'GET /(back|ok).*host=(localhost|127.0.0.1):'"$tlsport")" 3 \
    'https: both names were asked'
is "$(gets 'GET /back.*secret=opensesame')" 0 'https: the secret did not arrive'
rm -rf tls; secure downgrade; exits 111 'https to http: status 111'
says 'redirected from https to http at 127.0.0.1' 'https to http: said'
CURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt secure ok
exits 111 'an authority that we do not know: status 111'
says 'certificate' 'an authority that we do not know: said'
rm -rf tls; CURL_CA_BUNDLE='' SSL_CERT_FILE=$T/ca.pem secure ok
exits 0 'SSL_CERT_FILE is honoured'
rm -rf tls; CURL_CA_BUNDLE=$T/none.pem secure ok
exits 2 'no file of authorities: this machine is not fit'

# ---- credentials ----
cat >.gitconfig <<'EOF'
[credential]
	helper = "!f() { cat >>$HOME/asked; echo username=user; echo 'password=pa ss:q'; }; f"
EOF
ends login 0 ''
is "$(gets 'POST.*auth=Basic dXNlcjpwYSBzczpx')" 1 'login: git-credential is asked on 401'
is "$(gets 'POST.*auth=-')" 1 'login: and not before'
is "$(sed -n 's/^host=//p' asked)" "127.0.0.1:$port" 'login: for that host'
ends loginload 0 ''
: >asked
ends cross 0 ''
is "$(cat asked)" '' 'cross: nobody is asked for credentials'
is "$(gets 'auth=Basic')" 0 'cross: none are sent'
rm .gitconfig
ends login 1 "$at \\(401, and git-credential has nothing for it\\)"
says 'git-credential' 'login: no prompt, and a hint'

# ---- hosts: what a commit's .lfsconfig may name ----
: >srv/log
run lfs-fetch -H gitlab.com -e "$url/ok" <p
exits 2 'a host that is not listed: status 2'
says "^lfs-fetch: endpoint $url/ok: host 127.0.0.1:$port is not on the list of hosts \\(-H\\), skipped" \
    'a host that is not listed: one clear line'
run lfs-fetch -e "$url/ok" <p; exits 2 'no list: nobody is asked'
run lfs-fetch -H 127.0.0.1:1 -e "$url/ok" <p; exits 2 'another port: nobody is asked'
for e in http://evil.invalid/x ftp://127.0.0.1/x file:///etc 'ssh://git@127.0.0.1/x' \
    'git@127.0.0.1:o/r' /etc/passwd '' 'https://' 'https://127.0.0.1 /x' \
    'http:127.0.0.1/x' 'https:/evil.invalid/://x' \
    "http://127.0.0.1@evil.invalid/" "http://127.evil.invalid/" \
    '--upload-pack=touch x'; do
	run lfs-fetch -H 127.0.0.1 -H evil.invalid -e "$e" <p
	exits 2 "endpoint $e: status 2"
	says '^lfs-fetch: endpoint .*: not (https|a URL.*), skipped' "endpoint $e: skipped"
done
is "$(cat srv/log)" '' 'and nothing was asked'
: >asked
run lfs-fetch -H "127.0.0.1:$port" -e "http://user:secret@127.0.0.1:$port/ok" <p
exits 0 'a user in the URL is left out'
is "$(gets 'auth=-')" 2 'and not sent'

# ---- endpoints in order ----
rm -rf store; : >srv/log
run lfs-fetch -S store -H 127.0.0.1 -e "$url/gone" -e "$url/quota" \
    -e "$url/ok" -e "$url/ok/" <p
exits 0 'the next endpoint serves it'
same "$out" "srv/$oid" 'the object'
says "^lfs-fetch: $oid: came from 127.0.0.1:$port, not from 127.0.0.1:$port \\(404: no such repository\\), 127.0.0.1:$port \\(509" \
    'which one, and why not the first'
is "$(gets POST)" 3 'each was asked once'
rm -rf store
run lfs-fetch -q -S store -H 127.0.0.1 -e "$url/wrong" -e "$url/ok" <p
exits 0 'wrong bytes: the next endpoint'
same "$out" "srv/$oid" 'the object'
rm -rf store
run lfs-fetch -S store -H 127.0.0.1 -t 1 -e "$url/short" -e "$url/ok" <p
exits 0 'a part from one endpoint'
is "$(gets 'GET /ok.*range=bytes=150000-')" 1 'is resumed at the next'
run lfs-fetch -S store2 -H 127.0.0.1 -t 1 -e "$url/gone" -e "$url/down" <p
exits 111 'one lost it, one is down: status 111'
run lfs-fetch -S store2 -H 127.0.0.1 -e "$url/gone" -e "$url/o410" -e https://evil.invalid/ <p
exits 1 'all that may be asked lost it: status 1'

# ---- what ran beside ----
wait "$snail" "$snail2"
ok 'slow: the object' cmp snail-got "slow/$slow"
is "$(grep -Ec '^snail-got: [0-9]+% of 8\.0 MB, [0-9.]+ kB/s, 0:00:[0-9]+ left$' snail.err)" 1 \
    'slow: a plain line after ten seconds'
is "$(cat snail2.err)" '' 'slow: nothing with -q'
for c in stall stalled loris; do
	await $c.status
	is "$(cat $c.status)" 111 "$c: status 111 within bounds"
	ok "$c: said" grep -q "too slow.*tried 2 times" $c.err
	absent $c-got "$c: nothing under the final name"
done
finished
