//! Vendors and their offers.

use super::output::Output;
use super::text::{END, END_DATE_TIME, END_DOLLARS, END_INTEGER, Text};
use super::{Words, country, iri, provenance};
use crate::calendar::{DAY_MS, TODAY};
use crate::draw::{Bell, Dates, countries};
use crate::error::Error;
use crate::random::JavaRandom;
use crate::scale::Scale;
use crate::seeds;

const FROM: i64 = TODAY - 97 * DAY_MS;

pub(super) fn write(scale: &Scale, words: &mut Words, out: &mut Output) -> Result<(), Error> {
    let [dates, values, countries_seed, _, vendors] = scale.seeds.vendors;
    let mut dates = Dates::new(dates, FROM, TODAY);
    let mut values = JavaRandom::new(values);
    let mut countries = countries(countries_seed);
    let mut vendors = JavaRandom::new(vendors);
    let mut vendor_iri = String::new();
    for vendor in 1..=scale.offers.owners() {
        iri(&mut vendor_iri, |text| text.owned("Vendor", vendor, "Vendor", vendor));
        let text = &mut out.text;
        text.put(&vendor_iri).put(class!(bsbm!("Vendor")));
        words.describe(text, &vendor_iri, &mut values, (20, 50));
        text.put(&vendor_iri).put(link!(foaf!("homepage")));
        text.put("<http://www.vendor").number(vendor).put(".com/> .\n");
        country(text, &vendor_iri, countries.draw());
        provenance(text, &vendor_iri, &vendor_iri, dates.draw());
        out.end(7)?;
        write_offers(scale, vendor, &vendor_iri, &mut vendors, &mut values, out)?;
    }
    Ok(())
}

fn write_offers(
    scale: &Scale,
    vendor: u32,
    vendor_iri: &str,
    vendors: &mut JavaRandom,
    values: &mut JavaRandom,
    out: &mut Output,
) -> Result<(), Error> {
    let [delivery, product, dates] = seeds::draw(vendors);
    let mut delivery = Bell::new(delivery, 2.0, 21, 14.2);
    let mut products = Bell::new(product, 2.0, scale.products.total(), 4.0);
    let mut dates = Dates::new(dates, FROM, TODAY);
    let mut subject = String::new();
    for number in scale.offers.owned_by(vendor) {
        let start = out.text.bytes.len();
        let product = products.draw();
        iri(&mut subject, |text| text.owned("Vendor", vendor, "Offer", number));
        let text = &mut out.text;
        text.put(&subject).put(class!(bsbm!("Offer")));
        text.put(&subject).put(link!(bsbm!("product")));
        text.owned("Producer", scale.products.owner(product), "Product", product).put(END);
        text.put(&subject).put(link!(bsbm!("vendor"))).put(vendor_iri).put(END);
        text.put(&subject)
            .put(literal!(bsbm!("price")))
            .price(values.double() * 9995.0 + 5.0)
            .put(END_DOLLARS);
        let date = dates.draw();
        let valid_from = date - i64::from(values.between(0, 90)) * DAY_MS;
        let valid_to = date + i64::from(values.between(7, 90)) * DAY_MS;
        date_time(text, &subject, literal!(bsbm!("validFrom")), valid_from);
        date_time(text, &subject, literal!(bsbm!("validTo")), valid_to);
        text.put(&subject).put(literal!(bsbm!("deliveryDays"))).number(delivery.draw()).put(END_INTEGER);
        text.put(&subject).put(link!(bsbm!("offerWebpage"))).offer_page(vendor, number).put(END);
        provenance(text, &subject, vendor_iri, date);
        out.end_about(product, start, 10)?;
    }
    Ok(())
}

/// One triple with the first moment of a day.
pub(super) fn date_time(text: &mut Text, subject: &str, predicate: &str, ms: i64) {
    text.put(subject).put(predicate).day(ms).put(END_DATE_TIME);
}
