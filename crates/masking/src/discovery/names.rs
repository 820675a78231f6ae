//! What a column's name says.
//!
//! A name is split into words at separators and where a small letter is followed by a capital. The words are looked up
//! joined (`firstname`, `first_name` and `FirstName` are the same) and one by one. Words that turn a name into something
//! about the data rather than the data (`email_sent_at`, `phone_count`) end the search.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What names hold: a kind and how sure it is. A word may stand for several written together.
const EXACT: &[(&str, f32, &str)] = &[
    (
        "e-mail",
        0.95,
        "email mail emailaddress mailaddress emailadresse emails correo correoelectronico \
         courriel adressemail epost mel replyto",
    ),
    (
        "telephone number",
        0.9,
        "phone telephone tel mobile cell cellphone mobilephone phonenumber mobilenumber fax \
         faxnumber telefon telefonnummer telefono movil celular handy handynummer mobil \
         mobilnummer portable telefone cellulare telefoon msisdn phoneno whatsapp",
    ),
    (
        "first name",
        0.9,
        "firstname fname givenname forename vorname prenom primernombre nombre nome voornaam \
         imie middlename secondname rufname fornavn fornamn",
    ),
    (
        "last name",
        0.9,
        "lastname lname surname familyname nachname familienname nomdefamille apellido \
         apellidos cognome achternaam nazwisko maidenname geburtsname sobrenome etternavn \
         efternamn mothersmaidenname",
    ),
    (
        "name of a person",
        0.85,
        "author authorname shipname billname attendee payee payer signedby fullname personname \
         customername clientname patientname employeename contactname contactperson cardholder \
         cardholdername accountholder holdername kundenname ansprechpartner nomcomplet \
         nombrecompleto nomecompleto recipient recipientname beneficiary signatory nextofkin \
         emergencycontact guardian kontoinhaber spouse titulaire shiptoname billtoname \
         ownername",
    ),
    (
        "address",
        0.85,
        "address street streetaddress addressline addr strasse straße anschrift adresse rue \
         direccion calle indirizzo via endereco adres straat ulica hausnummer housenumber \
         postaladdress homeaddress shippingaddress billingaddress deliveryaddress domicilio \
         wohnort",
    ),
    ("city", 0.7, "city town ort stadt ville ciudad citta cidade miasto plaats"),
    (
        "postcode",
        0.8,
        "postcode zip zipcode postalcode plz postleitzahl codepostal codigopostal cap cep \
         kodpocztowy postnummer",
    ),
    (
        "date of birth",
        0.95,
        "dob birthdate dateofbirth birthday born bornon geburtsdatum geburtstag datenaissance \
         datedenaissance fechanacimiento fechadenacimiento datanascita datadinascita \
         datanascimento geboortedatum naissance fodselsdato yearofbirth birthyear gebdat",
    ),
    (
        "national id",
        0.9,
        "ssn socialsecurity socialsecuritynumber nationalid nationalidnumber nino \
         nationalinsurance nationalinsurancenumber taxid taxnumber steuerid steuernummer \
         sozialversicherungsnummer svnr ahv ahvnummer dni nie nif curp cpf pesel bsn \
         personnummer codicefiscale numerosecu nir sin passport passportnumber passportno \
         passnummer pasaporte driverslicense driverlicense drivinglicence licensenumber \
         fuehrerschein identitynumber idcard personalausweis aadhaar itin tin \
         medicalrecordnumber mrn insurancenumber healthinsurancenumber licenseplate kennzeichen",
    ),
    (
        "payment card",
        0.9,
        "creditcard creditcardnumber cardnumber cardno ccnumber ccnum ccno pan debitcard \
         kreditkarte kreditkartennummer cartebancaire tarjeta numerotarjeta paymentcard",
    ),
    ("security code of a card", 0.9, "cvv cvc cvv2 cvc2 securitycode cardpin pin"),
    ("IBAN", 0.95, "iban ibannumber"),
    (
        "bank account",
        0.85,
        "bankaccount bankaccountnumber accountnumber acctno accountno kontonummer routingnumber \
         sortcode numerocuenta cuentabancaria rib bankleitzahl",
    ),
    (
        "IP address",
        0.85,
        "ip ipaddress ipaddr clientip remoteip remoteaddr lastip loginip macaddress ipadresse",
    ),
    (
        "password or secret",
        0.9,
        "pass userpass sessionkey activationkey encryptionkey credentials passphrase password \
         passwd pwd passwort kennwort motdepasse contrasena senha passwordhash secret apikey \
         apitoken accesstoken refreshtoken token authtoken resettoken secretkey privatekey \
         sessiontoken salt otpsecret totpsecret securityanswer clientsecret",
    ),
    (
        "user name",
        0.75,
        "loginid nicename handle username userlogin login loginname benutzername nickname \
         screenname utilisateur usuario twitterhandle skype linkedin facebook",
    ),
    (
        "income",
        0.85,
        "salary income wage gehalt lohn salaire salario stipendio annualincome basesalary \
         hourlyrate bonusamount einkommen networth compensation creditscore",
    ),
    (
        "gender",
        0.7,
        "titleofcourtesy courtesytitle civilite gender sex geschlecht sexe sexo sesso \
         salutation anrede",
    ),
    (
        "health or belief",
        0.85,
        "maritalstatus familystatus familienstand sickleave sickdays pregnancy diagnosis \
         diagnose diagnostic allergies bloodtype bloodgroup blutgruppe disability religion \
         konfession ethnicity race medication medications medicalhistory sexualorientation \
         politicalparty unionmembership hivstatus symptoms biometric fingerprint",
    ),
    ("position", 0.75, "latitude longitude lat lng lon gpslat gpslon geolocation"),
    (
        "remarks in prose",
        0.6,
        "notes note comment comments remark remarks bemerkung bemerkungen notiz notizen \
         commentaire commentaires comentario comentarios freetext freitext biography bio \
         aboutme feedback osservazioni anmerkung",
    ),
];

/// Last words of names that are about the data: when, how many, whether.
const ABOUT: &str = "at on count counts sent verified confirmed valid validated status state type types kind id \
    ids enabled flag format template templates subject bounced optin consent preference \
    preferences length size limit policy provider carrier category brand network currency \
    required attempts expires expiry expired changed updated created version label pattern \
    regex language timezone algorithm position order sort visible quota domain server port \
    queue campaign class level rank group budget center centre band grade tax fee fees model \
    mask unit page pages views rotation days area plan coverage per total average min max pct \
    percent ratio score lookup zone";

/// First words after which a name is of a thing. `name` alone is a person's only in a table of people.
const THINGS: &str = "product item file table column company brand event job task project plan category model \
    device host server schema index queue topic role group team department campaign template \
    report feature display short long legal trade drug species course city country street bank \
    branch currency store shop vendor system engine log api app package release web image \
    document release machine";

/// Tables of people, by a word of their name: a column `name` there is a person's.
const PEOPLE: &str = "customer customers user users person persons people employee employees patient patients \
    client clients contact contacts member members student students staff applicant applicants \
    subscriber subscribers guest guests passenger passengers driver drivers doctor doctors \
    teacher teachers tenant tenants author authors kunde kunden mitarbeiter personen personas \
    cliente clientes clienti dipendenti empleados employes klienci voter voters donor donors \
    player players buyer buyers";

/// What people call themselves there.
const NAME: &[&str] = &["name", "nom", "naam", "nazwa", "namn", "navn"];

/// Kinds that a single word of a longer name is enough for, such as `customer_email`.
const BY_LAST_WORD: &[&str] = &[
    "e-mail",
    "telephone number",
    "first name",
    "last name",
    "address",
    "postcode",
    "date of birth",
    "national id",
    "payment card",
    "security code of a card",
    "IBAN",
    "IP address",
    "password or secret",
    "income",
    "city",
    "remarks in prose",
    "gender",
];

/// The kind of data that a column's name speaks of, and how sure that is.
pub(super) fn kind(column: &str, table: &str) -> Option<(&'static str, f32)> {
    let mut words = words(column);
    // `phone2`, `address_line_1`.
    if words.len() > 1
        && words.last()?.bytes().all(|b| b.is_ascii_digit())
        && whole(&words).is_none()
    {
        words.pop();
    }
    let last = words.last()?;
    if let Some(found) = whole(&words) {
        return Some(found);
    }
    if NAME.contains(&last.as_str()) {
        return name_of_person(&words, table);
    }
    let about = words.len() > 1 && has(ABOUT, last);
    let thing = words.len() > 1 && has(THINGS, &words[0]);
    if about || thing {
        return None;
    }
    // The longest ending of the name that is known: `home_street_address`, `customer_email`.
    (1..words.len()).find_map(|skipped| {
        let (title, confidence) = whole(&words[skipped..])?;
        let single = skipped + 1 == words.len();
        let enough = !single || BY_LAST_WORD.contains(&title) && (last.len() > 2 || last == "ip");
        enough.then_some((title, confidence * 0.9))
    })
}

fn name_of_person(words: &[String], table: &str) -> Option<(&'static str, f32)> {
    const TITLE: &str = "name of a person";
    let people = |word: &String| has(PEOPLE, word);
    match words {
        [_] => self::words(table).iter().any(people).then_some((TITLE, 0.75)),
        [first, ..] if people(first) => Some((TITLE, 0.85)),
        _ => None,
    }
}

/// Whether a list has a word.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// What these words stand for when they are written together.
fn whole(words: &[String]) -> Option<(&'static str, f32)> {
    static KNOWN: LazyLock<HashMap<&str, (&str, f32)>> = LazyLock::new(|| {
        let kinds = EXACT.iter();
        kinds
            .flat_map(|(title, sure, names)| names.split(' ').map(move |n| (n, (*title, *sure))))
            .collect()
    });
    KNOWN.get(words.concat().as_str()).copied()
}

/// Words of a name, in small letters and without accents.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous = ' ';
    for c in name.chars().take(200) {
        let digit_begins = c.is_ascii_digit() && previous.is_alphabetic();
        let begins = c.is_uppercase() && previous.is_lowercase() || digit_begins;
        if c.is_alphanumeric() {
            if begins || !previous.is_alphanumeric() || words.is_empty() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase().map(plain));
            }
        }
        previous = c;
    }
    // `e_mail`, and `EMail` where E is taken for a word.
    if let Some(at) = words.windows(2).position(|pair| pair[0] == "e" && pair[1] == "mail") {
        words.splice(at..at + 2, ["email".to_owned()]);
    }
    words
}

fn plain(c: char) -> char {
    match c {
        'á' | 'à' | 'â' | 'ä' | 'ã' | 'å' => 'a',
        'é' | 'è' | 'ê' | 'ë' | 'ę' => 'e',
        'í' | 'ì' | 'î' | 'ï' => 'i',
        'ó' | 'ò' | 'ô' | 'ö' | 'õ' | 'ø' => 'o',
        'ú' | 'ù' | 'û' | 'ü' => 'u',
        'ç' => 'c',
        'ñ' => 'n',
        'ł' => 'l',
        'ß' => 'ß',
        c => c,
    }
}
