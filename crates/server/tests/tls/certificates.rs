//! Certificates and lists of the table, made anew by each run.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CustomExtension,
    DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate and its key.
#[derive(Clone)]
pub(crate) struct Holder {
    pub(crate) params: CertificateParams,
    pub(crate) key: Arc<KeyPair>,
    pub(crate) der: CertificateDer<'static>,
    pub(crate) pem: String,
}

/// The years of a certificate or a list that is over, valid, or not begun.
#[derive(Clone, Copy)]
pub(crate) enum Years {
    Past,
    Now,
    Future,
}

impl Years {
    fn span(self) -> (i32, i32) {
        match self {
            Years::Past => (2000, 2010),
            Years::Now => (2010, 2900),
            Years::Future => (2900, 3000),
        }
    }
}

pub(crate) fn set_years(params: &mut CertificateParams, years: Years) {
    let (from, to) = years.span();
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
}

pub(crate) fn set_name(params: &mut CertificateParams, name: &str) {
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
}

fn new_key() -> Arc<KeyPair> {
    Arc::new(KeyPair::generate().expect("a key"))
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    set_years(&mut params, Years::Now);
    set_name(&mut params, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    params
}

/// The parameters of the server's usual certificate: for localhost, and for one purpose.
pub(crate) fn server_params() -> CertificateParams {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    set_years(&mut params, Years::Now);
    set_name(&mut params, "server");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params
}

impl Holder {
    fn new(params: CertificateParams, key: Arc<KeyPair>, made: &rcgen::Certificate) -> Self {
        Holder { params, key, der: made.der().clone(), pem: made.pem() }
    }

    /// A certificate that signs itself.
    pub(crate) fn of_itself(mut params: CertificateParams) -> Self {
        params.use_authority_key_identifier_extension = false;
        let key = new_key();
        let made = params.self_signed(&*key).expect("a certificate");
        Self::new(params, key, &made)
    }

    /// A root authority.
    pub(crate) fn root(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = authority_params("root");
        change(&mut params);
        Self::of_itself(params)
    }

    /// The same authority with another certificate.
    pub(crate) fn renewed(&self, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = self.params.clone();
        change(&mut params);
        let made = params.self_signed(&*self.key).expect("a certificate");
        Self::new(params, Arc::clone(&self.key), &made)
    }

    /// An authority below this one.
    pub(crate) fn authority(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let mut params = authority_params(name);
        change(&mut params);
        self.signs(params, new_key())
    }

    /// A server's certificate below this one.
    pub(crate) fn server(&self, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = server_params();
        change(&mut params);
        self.signs(params, new_key())
    }

    /// A certificate of these parameters for this key, signed by this one.
    pub(crate) fn signs(&self, params: CertificateParams, key: Arc<KeyPair>) -> Self {
        // A key that is not for signing signs all the same.
        let mut able = self.params.clone();
        able.key_usages = Vec::new();
        let issuer = Issuer::from_params(&able, &*self.key);
        let made = params.signed_by(&*key, &issuer).expect("a certificate");
        Self::new(params, key, &made)
    }

    pub(crate) fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }

    /// This authority's list of revoked numbers.
    pub(crate) fn list(&self, years: Years, revoked: &[u64]) -> String {
        let (from, to) = years.span();
        self.list_of(from, to, revoked)
    }

    /// The same from one year to another.
    pub(crate) fn list_of(&self, from: i32, to: i32, revoked: &[u64]) -> String {
        let mut able = self.params.clone();
        able.key_usages = Vec::new();
        let issuer = Issuer::from_params(&able, &*self.key);
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(from, 1, 1),
            next_update: date_time_ymd(to, 1, 1),
            crl_number: SerialNumber::from(u64::from(from.unsigned_abs())),
            issuing_distribution_point: None,
            revoked_certs: revoked
                .iter()
                .map(|number| RevokedCertParams {
                    serial_number: SerialNumber::from(*number),
                    revocation_time: date_time_ymd(from, 1, 1),
                    reason_code: None,
                    invalidity_date: None,
                })
                .collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&issuer).expect("a list").pem().expect("a list")
    }
}

/// An extension of its own.
pub(crate) fn extension(oid: &[u64], content: &[u8], is_critical: bool) -> CustomExtension {
    let mut extension = CustomExtension::from_oid_content(oid, content.to_vec());
    extension.set_criticality(is_critical);
    extension
}

/// Names of subjectAltName: `IP:` before an address.
pub(crate) fn alternatives(names: &[&str]) -> Vec<SanType> {
    names
        .iter()
        .map(|name| match name.strip_prefix("IP:") {
            Some(address) => SanType::IpAddress(address.parse().expect("an address")),
            None => SanType::DnsName((*name).try_into().expect("a name")),
        })
        .collect()
}
