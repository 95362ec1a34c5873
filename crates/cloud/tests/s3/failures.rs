//! Refusals and silence.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use snowmelt_cloud::{CloudOptions, Credentials, conditional_puts_work, open};
use snowmelt_io::{Answer, Ask, Clock, ObjectErrorKind, PutIf, Version};

use crate::canned::{Canned, answer, refusal};
use crate::server::{KEY, Server};
use crate::{asked, get, keys, objects, put};

#[test]
fn a_wrong_secret_is_refused() {
    let server = Server::start();
    let with = |credentials| CloudOptions { credentials, ..server.options() };
    let key =
        |id: &str, secret: &str| Credentials::Key { id: id.into(), secret: secret.into(), session: None };
    let said = |credentials| match get(&*objects(&with(credentials), ""), "a", None) {
        Err(ObjectErrorKind::Refused(said)) => said,
        other => panic!("{other:?}"),
    };
    let wrong_secret = said(key(KEY, "wrong-secret"));
    assert!(wrong_secret.starts_with("key KEYF… of the options does not fit its secret"), "{wrong_secret}");
    assert!(!wrong_secret.contains("wrong-secret"), "{wrong_secret}");
    let wrong_key = said(key("OTHERKEY", "wrong-secret"));
    assert!(wrong_key.starts_with("key OTHE… of the options"), "{wrong_key}");
    let anonymous = said(Credentials::Anonymous);
    assert!(anonymous.starts_with("a request without credentials is not allowed"), "{anonymous}");
    let put_refused = put(&*objects(&with(key(KEY, "wrong-secret")), ""), "a", b"1", PutIf::Absent);
    assert!(matches!(put_refused, Err(ObjectErrorKind::Refused(_))), "{put_refused:?}");
}

#[test]
fn a_missing_bucket_is_said() {
    let server = Server::start();
    let part = open("s3://none/a", &server.options()).unwrap();
    let said = keys(&*part, "", None, 10).unwrap_err().to_string();
    let expected = format!("there is no bucket none at {}: create it", server.endpoint());
    assert!(said.starts_with(&expected), "{said}");
}

#[test]
fn an_endpoint_that_is_not_there_is_told_at_once() {
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let options = CloudOptions {
        credentials: Credentials::Key { id: KEY.into(), secret: "s".into(), session: None },
        endpoint: Some(format!("http://{at}")),
        ..CloudOptions::default()
    };
    let begun = Instant::now();
    let part = objects(&options, "");
    let refused = get(&*part, "a", None).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let ObjectErrorKind::Unavailable(said) = refused else { panic!("{refused:?}") };
    assert!(said.starts_with(&format!("bucket data at http://{at}: cannot connect: ")), "{said}");
    let ObjectErrorKind::Unavailable(_) = keys(&*part, "", None, 1).unwrap_err() else { panic!() };
}

#[test]
fn a_request_to_a_silent_server_is_given_up() {
    let server = Canned::start(|_| None);
    let part = objects(&server.options(), "");
    let (sender, answers) = mpsc::channel();
    let get = Ask::Get { key: "a".into(), range: None };
    let ongoing = part.begin(get, Box::new(move |answer| sender.send(answer).unwrap()));
    wait_for(|| server.seen().len() == 1);
    assert!(answers.try_recv().is_err());
    drop(ongoing);
    assert!(answers.recv().is_err(), "the handle is dropped: there is no answer");
    wait_for(|| server.seen().contains(&"gone".to_owned()));
}

#[test]
fn a_silent_server_has_a_limit() {
    let server = Canned::start(|_| None);
    let options = CloudOptions { request_limit: Duration::from_millis(300), ..server.options() };
    let begun = Instant::now();
    let said = get(&*objects(&options, ""), "a", None).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let ObjectErrorKind::Unavailable(said) = said else { panic!("{said:?}") };
    assert!(said.contains("no answer in time"), "{said}");
    assert_eq!(server.seen().iter().filter(|request| request.starts_with("GET")).count(), 1);
}

fn wait_for(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waited for too long");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn refusals_have_kinds_and_are_not_repeated() {
    let slow = Canned::start(|_| Some(refusal(503, "SlowDown")));
    let part = objects(&slow.options(), "");
    assert_eq!(get(&*part, "a", None), Err(ObjectErrorKind::TooOften));
    assert_eq!(put(&*part, "a", b"1", PutIf::Always), Err(ObjectErrorKind::TooOften));
    assert_eq!(keys(&*part, "", None, 1), Err(ObjectErrorKind::TooOften));
    assert_eq!(asked(&*part, Ask::Delete { key: "a".into() }), Err(ObjectErrorKind::TooOften));
    assert_eq!(slow.seen().len(), 4, "no request is repeated");

    let busy = Canned::start(|_| Some(refusal(409, "ConditionalRequestConflict")));
    let part = objects(&busy.options(), "");
    let is_version = PutIf::Is(Version("\"v\"".into()));
    assert_eq!(put(&*part, "a", b"1", is_version), Err(ObjectErrorKind::Changed));
    assert_eq!(put(&*part, "a", b"1", PutIf::Absent), Err(ObjectErrorKind::Changed));
    assert_eq!(busy.seen().len(), 2);
    assert!(matches!(put(&*part, "a", b"1", PutIf::Always), Err(ObjectErrorKind::Unavailable(_))));

    let broken = Canned::start(|_| Some(refusal(500, "InternalError")));
    assert!(matches!(get(&*objects(&broken.options(), ""), "a", None), Err(ObjectErrorKind::Unavailable(_))));
    let expired = Canned::start(|_| Some(refusal(400, "ExpiredToken")));
    let said = get(&*objects(&expired.options(), ""), "a", None).unwrap_err().to_string();
    assert!(said.contains("get a new token"), "{said}");
    let old = Canned::start(|_| Some(refusal(501, "NotImplemented")));
    let refused = put(&*objects(&old.options(), ""), "a", b"1", PutIf::Absent);
    assert!(matches!(refused, Err(ObjectErrorKind::Unsupported(_))), "{refused:?}");
    let elsewhere = Canned::start(|_| {
        Some(answer(
            301,
            "x-amz-bucket-region: region-2\r\n",
            "<Error><Code>PermanentRedirect</Code></Error>",
        ))
    });
    let said = get(&*objects(&elsewhere.options(), ""), "a", None).unwrap_err().to_string();
    assert!(said.contains("is in region region-2"), "{said}");
}

#[test]
fn a_delete_may_be_refused_within_its_answer() {
    let server = Canned::start(|_| {
        let error = "<Error><Key>a</Key><Code>AccessDenied</Code><Message>No.</Message></Error>";
        Some(answer(200, "", &format!("<DeleteResult>{error}</DeleteResult>")))
    });
    let refused = asked(&*objects(&server.options(), ""), Ask::Delete { key: "a".into() });
    assert!(matches!(refused, Err(ObjectErrorKind::Refused(_))), "{refused:?}");
}

#[test]
fn a_body_that_ends_early_is_short() {
    let whole = Canned::start(|_| {
        Some("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 10\r\n\r\n01234".to_owned())
    });
    let short = Err(ObjectErrorKind::Short { got: 5, wanted: 10 });
    assert_eq!(get(&*objects(&whole.options(), ""), "a", None), short);
    assert_eq!(whole.seen().len(), 1, "no request is repeated");
    let ranged = Canned::start(|_| {
        let range = "Content-Length: 10\r\nContent-Range: bytes 20-29/100\r\n";
        Some(format!("HTTP/1.1 206 Part\r\nETag: \"v\"\r\n{range}\r\n01234"))
    });
    assert_eq!(get(&*objects(&ranged.options(), ""), "a", Some(20..30)), short);
}

#[test]
fn answers_that_are_not_of_the_protocol_are_refused() {
    let no_ranges = Canned::start(|_| Some(answer(200, "ETag: \"v\"\r\n", "0123456789")));
    let refused = get(&*objects(&no_ranges.options(), ""), "a", Some(2..4));
    assert!(matches!(refused, Err(ObjectErrorKind::Unsupported(_))), "{refused:?}");
    let no_store = Canned::start(|_| Some(answer(404, "", "<html>there is no such page</html>")));
    let refused = get(&*objects(&no_store.options(), ""), "a", None);
    assert!(matches!(refused, Err(ObjectErrorKind::Invalid(_))), "{refused:?}");
    let no_version = Canned::start(|_| Some(answer(200, "", "0123456789")));
    let refused = get(&*objects(&no_version.options(), ""), "a", None);
    assert!(matches!(refused, Err(ObjectErrorKind::Unsupported(_))), "{refused:?}");
    let no_list = Canned::start(|_| Some(answer(200, "", "<html>")));
    let refused = keys(&*objects(&no_list.options(), ""), "", None, 1);
    assert!(matches!(refused, Err(ObjectErrorKind::Unsupported(_))), "{refused:?}");
}

#[test]
fn a_server_that_ignores_conditions_is_found_out() {
    let checked = |server: &Canned| {
        let part = objects(&server.options(), "");
        let refused = conditional_puts_work(&*part, &Clock::real(), "").unwrap_err();
        assert!(matches!(refused.kind, ObjectErrorKind::Unsupported(_)), "{refused}");
        refused.kind.to_string()
    };
    fn taken(request: &str) -> Option<String> {
        Some(match request.starts_with("POST") {
            true => answer(200, "", "<DeleteResult></DeleteResult>"),
            false => answer(200, &format!("ETag: \"{}\"\r\n", request.len()), ""),
        })
    }
    let ignores_all = Canned::start(taken);
    let said = checked(&ignores_all);
    assert_eq!(
        said,
        "this store ignores conditions of puts (no object has the key): publishing would not be safe"
    );
    let seen = ignores_all.seen();
    assert!(seen[0].to_ascii_lowercase().contains("if-none-match: *"), "{}", seen[0]);
    assert!(seen.last().unwrap().starts_with("POST /data?delete"), "it is deleted");

    let ignores_versions = Canned::start(|request| {
        static PUTS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let is_absent = request.to_ascii_lowercase().contains("if-none-match");
        match is_absent && PUTS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0 {
            true => Some(refusal(412, "PreconditionFailed")),
            false => taken(request),
        }
    });
    assert!(checked(&ignores_versions).contains("(the object is of this version)"));
    let refuses_all = Canned::start(|_| Some(refusal(412, "PreconditionFailed")));
    assert!(checked(&refuses_all).contains("refuses a put whose condition holds"));
}

#[test]
fn a_machine_without_a_role_has_no_credentials() {
    let metadata = Canned::start(|_| Some(answer(404, "", "no role here")));
    let options = CloudOptions {
        credentials: Credentials::Ambient,
        settings: vec![("AWS_METADATA_ENDPOINT".to_owned(), metadata.options().endpoint.unwrap().into())],
        ..metadata.options()
    };
    let refused = get(&*objects(&options, ""), "a", None).unwrap_err();
    let ObjectErrorKind::Refused(said) = refused else { panic!("{refused:?}") };
    assert!(said.starts_with("there are no credentials: this machine gives none (status 404"), "{said}");
}

#[test]
fn a_role_of_the_machine_signs_requests() {
    let server = Canned::start(|request| {
        Some(match request.split(' ').nth(1).unwrap() {
            "/latest/api/token" => answer(200, "", "metadata-token"),
            "/latest/meta-data/iam/security-credentials/" => answer(200, "", "role"),
            "/latest/meta-data/iam/security-credentials/role" => answer(
                200,
                "",
                "{\"AccessKeyId\": \"ROLEKEY1\", \"SecretAccessKey\": \"secret-of-tests\", \
                 \"Token\": \"token-of-tests\", \"Expiration\": \"2099-01-01T00:00:00Z\"}",
            ),
            "/data/a" if request.contains("ROLEKEY1") => answer(200, "ETag: \"v\"\r\n", "0123"),
            _ => refusal(403, "AccessDenied"),
        })
    });
    let options = CloudOptions {
        credentials: Credentials::Ambient,
        settings: vec![("AWS_METADATA_ENDPOINT".to_owned(), server.options().endpoint.unwrap().into())],
        ..server.options()
    };
    let part = objects(&options, "");
    assert_eq!(get(&*part, "a", None).unwrap().0, b"0123");
    let said = get(&*part, "b", None).unwrap_err().to_string();
    assert!(said.contains("key ROLE… of this machine is not allowed in bucket data"), "{said}");
}

#[test]
fn encryption_is_asked_for() {
    use snowmelt_cloud::Encryption;
    let server = Canned::start(|_| Some(answer(200, "ETag: \"v\"\r\n", "")));
    let key = Some("key-1".to_owned());
    for encryption in [Encryption::OfStore, Encryption::OfKeyService { key }] {
        let options = CloudOptions { encryption: Some(encryption), ..server.options() };
        put(&*objects(&options, ""), "a", b"1", PutIf::Always).unwrap();
    }
    let seen: Vec<_> = server.seen().iter().map(|request| request.to_ascii_lowercase()).collect();
    assert!(seen[0].contains("x-amz-server-side-encryption: aes256"), "{}", seen[0]);
    assert!(seen[1].contains("x-amz-server-side-encryption: aws:kms"), "{}", seen[1]);
    assert!(seen[1].contains("x-amz-server-side-encryption-aws-kms-key-id: key-1"), "{}", seen[1]);
    assert!(seen[1].contains("x-amz-security-token: token-of-tests"), "{}", seen[1]);
}

#[test]
fn other_stores_speak_through_an_endpoint() {
    let server = Canned::start(|request| match request.replace("%2F", "/").starts_with("GET /data/p/a ") {
        true => Some(answer(
            200,
            "ETag: \"v\"\r\nx-goog-generation: 7\r\nLast-Modified: Tue, 01 Dec 2026 00:00:00 GMT\r\n",
            "0123",
        )),
        false => Some(answer(404, "x-ms-error-code: ContainerNotFound\r\n", "")),
    });
    let anonymous = CloudOptions { credentials: Credentials::Anonymous, ..server.options() };
    let google = open("gs://data/p", &anonymous).unwrap();
    assert_eq!(get(&*google, "a", None).unwrap(), (b"0123".to_vec(), 4, Version("7".into())));
    let refused = put(&*google, "b", b"1", PutIf::Absent);
    assert!(matches!(refused, Err(ObjectErrorKind::Invalid(_))), "puts need no token: {refused:?}");
    let azure = open("abfss://data@account.dfs.core.windows.net/p", &anonymous).unwrap();
    assert_eq!(get(&*azure, "a", None).unwrap(), (b"0123".to_vec(), 4, Version("\"v\"".into())));
    let said = get(&*azure, "b", None).unwrap_err().to_string();
    assert!(said.starts_with("there is no container data at http://"), "{said}");
    let Ok(Answer::Got { .. }) = asked(&*google, Ask::Get { key: "a".into(), range: None }) else { panic!() };
}

#[test]
fn addresses_and_settings_that_cannot_be_used_are_told() {
    let open = |address: &str, options: &CloudOptions| match open(address, options) {
        Err(error) => {
            assert!(matches!(error.kind, ObjectErrorKind::Invalid(_)), "{error}");
            assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
            error.to_string()
        }
        Ok(objects) => panic!("{}", objects.name()),
    };
    let plain = CloudOptions::default();
    assert!(open("s3://id:hush@data/a", &plain).starts_with("cannot open the objects of s3://…: "));
    assert!(open("az://data/a?sig=hush", &plain).starts_with("cannot open the objects of az://data/a: "));
    let endpoint = |endpoint: &str| CloudOptions { endpoint: Some(endpoint.to_owned()), ..plain.clone() };
    assert!(open("s3://data", &endpoint("http://id:hush@host")).contains("without credentials"));
    assert!(open("s3://data", &endpoint("host:9000")).contains("begins with http"));
}
