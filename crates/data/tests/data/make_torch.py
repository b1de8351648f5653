"""Writes `legacy.pt`, `extras.pt` and `pyg.pt` as `torch.save` does, with stand-ins for PyTorch's classes: their pickles
name the same modules. Needs NumPy, not PyTorch. Usage: python make_torch.py FOLDER"""
import collections, io, pickle, struct, sys, types, zipfile
import numpy

torch = types.ModuleType("torch")
utils = types.ModuleType("torch._utils")
pyg = types.ModuleType("torch_geometric.data.data")
sys.modules.update({"torch": torch, "torch._utils": utils, "torch_geometric": pyg,
                    "torch_geometric.data": pyg, "torch_geometric.data.data": pyg})


def named(module, name):
    cls = type(name, (), {"__module__": module.__name__, "__qualname__": name})
    setattr(module, name, cls)
    return cls


def function(module, name):
    def f(*args):
        raise NotImplementedError
    f.__module__, f.__name__, f.__qualname__ = module.__name__, name, name
    setattr(module, name, f)
    return f


rebuild = function(utils, "_rebuild_tensor_v2")
STORAGES = {"f4": named(torch, "FloatStorage"), "i8": named(torch, "LongStorage")}


class Storage:
    def __init__(self, array):
        self.array, self.kind = array, STORAGES[array.dtype.str[1:]]


class Tensor:
    def __init__(self, array):
        self.array, self.storage = array, Storage(array)

    def __reduce__(self):
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        return rebuild, (self.storage, 0, self.array.shape, strides, False, collections.OrderedDict())


class device(named(torch, "device")):
    __module__, __qualname__ = "torch", "device"

    def __reduce__(self):
        return device, ("cuda", 0)


class Size(tuple):
    __module__, __qualname__ = "torch", "Size"

    def __reduce__(self):
        return Size, (tuple(self),)


class DType:
    def __reduce__(self):
        return "float32"


torch.device, torch.Size, torch.float32 = device, Size, DType()


def whichmodule(obj, name):
    return "torch" if isinstance(obj, DType) else old_whichmodule(obj, name)


old_whichmodule, pickle.whichmodule = pickle.whichmodule, whichmodule


class Pickler(pickle._Pickler):
    def __init__(self, file, storages, legacy):
        super().__init__(file, protocol=2)
        self.storages, self.legacy = storages, legacy

    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        keys = {id(s): k for k, s in self.storages.items()}
        key = keys.get(id(obj)) or str(94_000 + len(self.storages) if self.legacy else len(self.storages))
        self.storages[key] = obj
        return ("storage", obj.kind, key, "cpu", obj.array.size) + ((None,) if self.legacy else ())


def legacy(path, obj):
    with open(path, "wb") as f:
        info = dict(protocol_version=1001, little_endian=True, type_sizes=dict(short=2, int=4, long=4))
        for part in (0x1950A86A20F9469CFC6C, 1001, info):
            pickle.dump(part, f, protocol=2)
        storages = {}
        Pickler(f, storages, True).dump(obj)
        pickle.dump(sorted(storages), f, protocol=2)
        for key in sorted(storages):
            f.write(struct.pack("<q", storages[key].array.size) + storages[key].array.tobytes())


def save(path, obj):
    with zipfile.ZipFile(path, "w") as z:
        storages, out = {}, io.BytesIO()
        Pickler(out, storages, False).dump(obj)
        z.writestr("archive/data.pkl", out.getvalue())
        z.writestr("archive/byteorder", "little")
        for key in storages:
            z.writestr(f"archive/data/{key}", storages[key].array.tobytes())
        z.writestr("archive/version", "3\n")


folder = sys.argv[1]
f4 = lambda *v: Tensor(numpy.array(v, "<f4"))
weight = Tensor(numpy.arange(6, dtype="<f4").reshape(2, 3))
state = collections.OrderedDict(weight=weight, bias=f4(0.5, -1))
legacy(f"{folder}/legacy.pt", {"model": state, "again": weight, "ids": Tensor(numpy.array([7, -1], "<i8")), "epoch": 3})
counts = collections.defaultdict(list, {"seen": [f4(2)]})
save(f"{folder}/extras.pt", {
    "device": device(), "size": Size((2, 3)), "dtype": torch.float32, "set": {1, 2}, "frozen": frozenset("a"),
    "bytes": b"\x00\xff", "changing": bytearray(b"ab"), "empty": b"", "counts": counts, "step": numpy.float64(0.5),
    "array": numpy.arange(3), "complex": 1j, "big": 1 << 80, "model": state, "tensor": f4(3, 4)})
data = named(pyg, "Data")
edge_index = Tensor(numpy.array([[0, 1], [1, 0]], "<i8"))
as_dict = {"paper": {"x": f4(1, 2)}, ("paper", "cites", "paper"): {"edge_index": edge_index}}
save(f"{folder}/pyg.pt", (as_dict, {"x": f4(0, 2)}, data))
instance = data()
instance.x = f4(1)
save(f"{folder}/pyg-object.pt", instance)
