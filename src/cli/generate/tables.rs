//! The tables from which the made-up visits are drawn: places, names, diagnoses. Each row of a
//! table begins with its weight.

/// Sex as recorded by the hospital.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sex {
    Female,
    Male,
    /// Neither female nor male.
    X,
}

impl Sex {
    /// Returns the letter in the file.
    pub(crate) fn letter(self) -> &'static str {
        match self {
            Sex::Female => "F",
            Sex::Male => "M",
            Sex::X => "X",
        }
    }
}

/// A row of a table and its weight among the others.
pub(super) type Weighted<T> = (u32, T);

/// The towns whose zip codes share their first three digits.
pub(super) struct Area {
    /// The first three digits of the zip code.
    pub prefix: u32,
    /// The number of zip codes; the first ones are dense, the last ones almost empty.
    pub codes: u32,
    /// Race is drawn from [`RACES_CITY`] here, else from [`RACES_COUNTRY`].
    pub city: bool,
}

/// Shorthand for a row of [`AREAS`].
const fn area(prefix: u32, codes: u32, city: bool) -> Area {
    Area { prefix, codes, city }
}

/// The areas where patients live: hospitals around Boston, so most zip codes begin with 0, with a
/// few neighbours and a few travellers. The prefixes 04 and 05 are reserved for the [`GROUPS`].
pub(super) const AREAS: &[Weighted<Area>] = &[
    (260, area(21, 40, true)),
    (110, area(24, 30, true)),
    (75, area(23, 45, false)),
    (70, area(20, 35, false)),
    (65, area(18, 60, false)),
    (65, area(19, 50, false)),
    (60, area(17, 40, false)),
    (50, area(27, 35, false)),
    (45, area(16, 12, true)),
    (40, area(15, 50, false)),
    (30, area(10, 50, false)),
    (28, area(11, 10, true)),
    (25, area(14, 35, false)),
    (25, area(26, 40, false)),
    (20, area(25, 40, false)),
    (10, area(12, 40, false)),
    (8, area(13, 40, false)),
    (30, area(28, 50, false)),
    (28, area(29, 12, true)),
    (18, area(30, 40, false)),
    (12, area(31, 10, false)),
    (8, area(38, 40, false)),
    (5, area(32, 40, false)),
    (3, area(34, 40, false)),
    (10, area(60, 60, false)),
    (8, area(61, 10, true)),
    (5, area(64, 50, false)),
    (4, area(100, 40, true)),
    (3, area(112, 30, true)),
    (2, area(120, 40, false)),
    (1, area(331, 60, true)),
    (1, area(606, 60, true)),
    (1, area(900, 60, true)),
];

/// Race in a city.
pub(super) const RACES_CITY: &[Weighted<&str>] = &[
    (540, "White"),
    (195, "Black"),
    (155, "Hispanic"),
    (90, "Asian"),
    (12, "Other"),
    (5, "American Indian"),
    (3, "Pacific Islander"),
];

/// Race elsewhere.
pub(super) const RACES_COUNTRY: &[Weighted<&str>] = &[
    (880, "White"),
    (40, "Hispanic"),
    (38, "Black"),
    (30, "Asian"),
    (7, "Other"),
    (4, "American Indian"),
    (1, "Pacific Islander"),
];

/// The highest education of an adult; data/education.csv of the project holds its hierarchy.
pub(super) const EDUCATION: &[Weighted<&str>] = &[
    (290, "High school"),
    (210, "Bachelor"),
    (160, "Some college"),
    (110, "Associate"),
    (100, "Master"),
    (60, "Some high school"),
    (30, "Primary school"),
    (25, "Doctorate"),
    (15, "No schooling"),
];

/// Marital status from 18 to 34.
pub(super) const MARITAL_YOUNG: &[Weighted<&str>] =
    &[(680, "Never married"), (270, "Married"), (30, "Divorced"), (19, "Separated"), (1, "Widowed")];

/// Marital status from 35 to 69.
pub(super) const MARITAL_MIDDLE: &[Weighted<&str>] =
    &[(600, "Married"), (180, "Never married"), (160, "Divorced"), (35, "Widowed"), (25, "Separated")];

/// Marital status from 70.
pub(super) const MARITAL_OLD: &[Weighted<&str>] =
    &[(450, "Married"), (380, "Widowed"), (100, "Divorced"), (60, "Never married"), (10, "Separated")];

/// Ages, both ends included: hospitals see newborns and the old. The last row yields the few of 105
/// and more.
pub(super) const AGES: &[Weighted<(i32, i32)>] = &[
    (1000, (0, 0)),
    (1600, (1, 17)),
    (2600, (18, 34)),
    (3000, (35, 54)),
    (4600, (55, 74)),
    (2400, (75, 89)),
    (200, (90, 99)),
    (5, (105, 112)),
];

/// The number of visits of a person in the three years, both ends included; the mean is near 1.65.
/// The last row is people on dialysis, with up to three visits a week.
pub(super) const VISITS: &[Weighted<(i32, i32)>] = &[
    (7700, (1, 1)),
    (1350, (2, 2)),
    (480, (3, 3)),
    (210, (4, 4)),
    (100, (5, 5)),
    (90, (6, 9)),
    (110, (10, 20)),
    (13, DIALYSIS_VISITS),
];

/// The number of visits of a dialysis patient, both ends included; others visit less often.
pub(super) const DIALYSIS_VISITS: (i32, i32) = (50, 156);

/// A diagnosis, the people it affects and the cost of a visit.
pub(super) struct Diagnosis {
    pub name: &'static str,
    /// Ages, both ends included.
    pub ages: (i32, i32),
    /// The only sex it affects, if any.
    pub sex: Option<Sex>,
    /// Usual days in hospital; 0 is a day case.
    pub days: i32,
    /// Dollars for the visit itself, without days in hospital.
    pub dollars: i32,
}

/// Shorthand for a diagnosis of either sex.
const fn either(name: &'static str, ages: (i32, i32), days: i32, dollars: i32) -> Diagnosis {
    Diagnosis { name, ages, sex: None, days, dollars }
}

/// Shorthand for a diagnosis of one sex.
const fn only(sex: Sex, name: &'static str, ages: (i32, i32), days: i32, dollars: i32) -> Diagnosis {
    Diagnosis { name, ages, sex: Some(sex), days, dollars }
}

/// Any age.
const ALL: (i32, i32) = (0, 130);

/// The diagnosis of a dialysis patient at each visit.
pub(super) const DIALYSIS: Diagnosis = either("Chronic kidney disease", (18, 130), 0, 480);

/// Forty diagnoses; the weights are near 1/rank (Zipf), so the first ten make two thirds of all
/// visits.
pub(super) const DIAGNOSES: &[Weighted<Diagnosis>] = &[
    (1200, either("Hypertension", (30, 130), 0, 310)),
    (600, either("Type 2 diabetes", (35, 130), 1, 620)),
    (400, either("Injury", ALL, 1, 1450)),
    (300, either("Upper respiratory infection", ALL, 0, 190)),
    (240, only(Sex::Female, "Pregnancy and childbirth", (16, 47), 3, 4200)),
    (200, either("Back pain", (16, 130), 0, 420)),
    (171, either("Depression", (12, 130), 4, 530)),
    (150, either("Coronary artery disease", (40, 130), 3, 6800)),
    (133, either("Pneumonia", ALL, 5, 2900)),
    (120, either("Asthma", (1, 130), 1, 540)),
    (109, either("Urinary tract infection", ALL, 1, 350)),
    (100, either("Osteoarthritis", (45, 130), 2, 3900)),
    (92, either("Heart failure", (50, 130), 5, 4300)),
    (86, either("Anxiety disorder", (8, 130), 0, 280)),
    (80, either("Stroke", (40, 130), 7, 9200)),
    (75, either("Atrial fibrillation", (45, 130), 2, 3100)),
    (71, either("Gastroenteritis", ALL, 1, 460)),
    (67, either("COPD", (40, 130), 4, 2400)),
    (63, either("Gallstones", (20, 130), 2, 5600)),
    (60, either("Appendicitis", (4, 60), 2, 6100)),
    (57, only(Sex::Female, "Breast cancer", (30, 130), 3, 12500)),
    (55, only(Sex::Male, "Prostate cancer", (45, 130), 2, 9800)),
    (52, either("Migraine", (10, 70), 0, 330)),
    (50, either("Cataract", (55, 130), 0, 2700)),
    (48, either("Hip fracture", (60, 130), 8, 15800)),
    (46, either("Alcohol dependence", (18, 130), 6, 900)),
    (44, either("Opioid dependence", (18, 70), 6, 950)),
    (43, either("Colorectal cancer", (40, 130), 6, 14300)),
    (41, either("Lung cancer", (45, 130), 6, 16900)),
    (40, either("Epilepsy", (1, 130), 2, 1300)),
    (39, either("Anemia", ALL, 1, 700)),
    (38, either("Dementia", (65, 130), 9, 1100)),
    (36, either("Sepsis", ALL, 9, 11200)),
    (35, either("Type 1 diabetes", (2, 60), 2, 880)),
    (34, either("Schizophrenia", (17, 80), 14, 1200)),
    (33, either("Hepatitis C", (18, 90), 1, 2100)),
    (32, either("HIV infection", (16, 80), 1, 1700)),
    (31, either("Multiple sclerosis", (20, 75), 2, 3300)),
    (31, either("Chlamydia infection", (15, 60), 0, 240)),
    (30, either("Congenital heart defect", (0, 20), 6, 24500)),
];

/// The diagnosis of most newborns.
pub(super) const BIRTH: Diagnosis = either("Birth", (0, 0), 2, 3600);

/// People who share birth decade, area, sex and diagnosis.
pub(super) struct Group {
    pub prefix: u32,
    /// First and last year of birth.
    pub born: (i32, i32),
    pub sex: Sex,
    pub diagnosis: Diagnosis,
}

/// Groups made on purpose. No other people have their zip area, so their class may be as large as k
/// demands and still reveals the diagnosis of all: k-anonymity holds, l-diversity is 1. l-diversity
/// was invented for this case.
pub(super) const GROUPS: &[Weighted<Group>] = &[
    // An HIV ward that men of their fifties and sixties travel to from Vermont.
    (
        4,
        Group {
            prefix: 58,
            born: (1960, 1969),
            sex: Sex::Male,
            diagnosis: either("HIV infection", ALL, 1, 1700),
        },
    ),
    // A summer camp in Maine for girls with diabetes.
    (
        3,
        Group {
            prefix: 45,
            born: (2010, 2019),
            sex: Sex::Female,
            diagnosis: either("Type 1 diabetes", ALL, 2, 880),
        },
    ),
    // A convent in Vermont whose nuns grow old together.
    (
        2,
        Group {
            prefix: 53,
            born: (1930, 1939),
            sex: Sex::Female,
            diagnosis: either("Dementia", ALL, 9, 1100),
        },
    ),
];

/// One in this many people belongs to one of the [`GROUPS`].
pub(super) const GROUP_ONE_IN: u32 = 400;

/// First names of women and of half of the people whose sex is X.
pub(super) const FIRST_FEMALE: &[&str] = &[
    "Abigail", "Alice", "Amara", "Angela", "Beatriz", "Carol", "Chloe", "Deborah", "Diana", "Dorothy",
    "Elena", "Emma", "Fatima", "Florence", "Grace", "Hannah", "Helen", "Irene", "Isabel", "Joan", "Judith",
    "Karen", "Keiko", "Laura", "Lucia", "Margaret", "Maria", "Mei", "Nora", "Olivia", "Patricia", "Priya",
    "Rosa", "Ruth", "Sarah", "Sofia", "Teresa", "Vivian", "Yasmin", "Zoe",
];

/// First names of men and of the other half.
pub(super) const FIRST_MALE: &[&str] = &[
    "Aaron", "Ahmed", "Albert", "Andrew", "Anthony", "Arjun", "Benjamin", "Carlos", "Charles", "Daniel",
    "David", "Diego", "Edward", "Ethan", "Francis", "Frank", "George", "Harold", "Henry", "Isaac", "James",
    "Jerome", "Joseph", "Kenji", "Kevin", "Liam", "Louis", "Lucas", "Malik", "Michael", "Noah", "Oscar",
    "Paul", "Peter", "Ralph", "Samuel", "Thomas", "Victor", "Walter", "William",
];

/// Family names.
pub(super) const LAST: &[&str] = &[
    "Adams", "Ahmadi", "Allen", "Alvarez", "Baker", "Barnes", "Bell", "Bennett", "Brooks", "Brown", "Burke",
    "Campbell", "Carter", "Chen", "Clark", "Collins", "Costa", "Cruz", "Davis", "Diaz", "Doyle", "Edwards",
    "Evans", "Farrell", "Fisher", "Flores", "Foster", "Garcia", "Gomez", "Gray", "Green", "Hall", "Harris",
    "Hayes", "Hill", "Howard", "Hughes", "Iyer", "Jackson", "Jenkins", "Johnson", "Jones", "Kelly", "Khan",
    "Kim", "King", "Lee", "Lewis", "Lopez", "Martin", "Mendes", "Miller", "Mitchell", "Moore", "Morales",
    "Morgan", "Murphy", "Nelson", "Nguyen", "Okafor", "Oliveira", "Park", "Parker", "Patel", "Perez",
    "Phillips", "Price", "Quinn", "Ramirez", "Reed", "Rivera", "Roberts", "Rossi", "Russell", "Sanders",
    "Santos", "Scott", "Silva", "Smith", "Stewart", "Sullivan", "Tanaka", "Taylor", "Torres", "Turner",
    "Walker", "Wang", "Ward", "Watson", "White", "Williams", "Wilson", "Wong", "Wood", "Wright", "Young",
    "Zhang",
];
