//! `floatgate volume create`: a volume, created over files or block devices.

use anyhow::{Context as _, Result};
use blockio::text;
use lab::{Error, Kind};
use live::{
    Compression, Contents, CreateOptions, Namespaces, Preallocation, SpaceTaken, UnlockingKey,
    VolumeOptions, create_while, host_shortages, keep_promise,
};
use real::guard;
use server::signals::{self, Signal};

use crate::args::{Compress, Create, Protection};
use crate::failure::Input;
use crate::{Ending, output};

/// Creates the volume and prints what it is.
pub(crate) fn create(args: &Create) -> Result<Ending> {
    let dies = args.dies.len();
    let is_protected = is_protected(args.protect, dies)?;
    if !is_protected && !args.hot_spares.is_empty() {
        let hint = "leave out --protect none, or give at least two --dies";
        return Err(Error::new(Kind::Input, "--hot-spares needs parity").hint(hint).into());
    }
    let options = CreateOptions {
        volume: args.volume.clone(),
        dies: args.dies.clone(),
        size: args.size,
        is_protected,
        over_provisioning: args.spare / 100.0,
        compression: match args.compress {
            Compress::None => Compression::None,
            Compress::Lz4 => Compression::Lz4,
            Compress::Zstd => Compression::Zstd,
        },
        physical: args.thin,
        unit: args.unit,
    };
    let shown = args.volume.display();
    let attempted = || format!("creating {shown}");
    options.check().with_context(|| Input(attempted()))?;
    let namespaces = Namespaces::laid_out(&args.export, args.size);
    let namespaces = namespaces.with_context(|| Input(attempted()))?;
    let volume_options = VolumeOptions {
        name: args.name.clone(),
        preallocation: if args.sparse { Preallocation::Off } else { Preallocation::Full },
        hot_spares: args.hot_spares.clone(),
        rated_cycles: args.rated_cycles,
        namespaces,
        contents: Contents::lost_if(args.destroy),
        key: key(args)?,
        opal: args.opal,
    };
    for path in args.dies.iter().chain(&args.hot_spares) {
        guard::check_unused(path).with_context(attempted)?;
    }
    if args.encrypt && args.destroy {
        output::talk("erasing all that the dies and hot spares held, which this key does not lock");
    }
    let signals = signals::received()?;
    let goes_on = || !matches!(signals.try_recv(), Ok(Signal::Stop));
    create_while(&options, &volume_options, &goes_on).with_context(attempted)?;
    if let Some(promise) = args.promise.promise() {
        keep_promise(&args.volume, promise).with_context(attempted)?;
    }
    for shortage in host_shortages(&args.volume) {
        output::talk(&format!("warning: {shortage}"));
    }
    let protection = if is_protected { "tolerates 1 failed die" } else { "without parity" };
    let (size, count) = (text::bytes(args.size.0), text::counted(dies as u64, "die"));
    output::talk(&format!("{shown}: {size} over {count}, {protection}"));
    let shape = options.shape().with_context(attempted)?;
    let files = options.dies.iter().chain(&args.hot_spares);
    let taken = SpaceTaken::of(&shape, files, volume_options.preallocation);
    if let Some(space) = space(&taken) {
        output::talk(&format!("{shown}: the files take {space}"));
    }
    if let Some(psid) = live::psid(&args.volume).with_context(attempted)? {
        output::talk(&format!("{shown}: the PSID is {psid}"));
    }
    output::data(&shown.to_string())?;
    Ok(Ending::Done)
}

/// True if one of so many dies holds parity.
fn is_protected(protect: Option<Protection>, dies: usize) -> Result<bool> {
    match protect {
        None => Ok(dies > 1),
        Some(Protection::None) => Ok(false),
        Some(Protection::One { dies: wanted }) if wanted == dies => Ok(true),
        Some(Protection::One { dies: wanted }) => {
            let data = wanted - 1;
            let text = format!("--protect {data}+1 needs {wanted} dies, but --dies names {dies}");
            Err(Error::new(Kind::Input, text).into())
        }
    }
}

/// The key of a volume that is to be encrypted.
fn key(args: &Create) -> Result<Option<UnlockingKey>> {
    let key = args.key.key()?;
    if key.is_some() && !args.encrypt {
        let text = "a key was given, and --encrypt was not";
        return Err(Error::new(Kind::Input, text).hint("add --encrypt").into());
    }
    Ok(key)
}

/// Says what space the files of all dies and hot spares take; none where there are only block
/// devices.
fn space(taken: &[SpaceTaken]) -> Option<String> {
    let total = |part: fn(&SpaceTaken) -> u64| taken.iter().map(part).sum::<u64>();
    let (now, most) = (total(|it| it.at_once.0), total(|it| it.most.0));
    match now < most {
        _ if taken.is_empty() => None,
        true => Some(format!("{} now, and at most {}", text::bytes(now), text::bytes(most))),
        false => Some(text::bytes(most)),
    }
}
