//! Spanish.

use super::Words;

pub(super) const WORDS: Words = Words {
    person: "id|num|numero|no|nro|cod|codigo|identificador paciente|persona|cliente, \
             id|num|numero|no|nro|cod|codigo asegurado|afiliado|beneficiario|socio, \
             id|num|numero|no|nro|cod|codigo participante|sujeto|usuario, \
             id|num|numero|no|nro|cod|codigo empleado|trabajador|alumno|estudiante, \
             paciente|cliente|usuario|empleado|alumno id, \
             num|numero|nro afiliacion|seguro|poliza|documento|dni|nif|ss, num|nro doc, nhc, \
             num|numero|nro hc, num|id|cod pac, historia clinica, num|numero|nro historia, \
             expediente clinico, =dni, dni nie|nif|paciente, =nif, nif paciente|cliente|titular, =NIE, \
             =NUSS, cuil, cuit, curp, =RFC, =RUT, cedula, tarjeta sanitaria, seguridad social, pasaporte*, \
             documento|carnet identidad, carnet conducir, licencia conducir",
    person_alone: "paciente, asegurado, afiliado, beneficiario, cliente, participante, persona, sujeto",
    contact: "correo*, telefono*, tel, tlf, tfno, movil, celular, num|numero|nro cuenta|tarjeta, \
              cuenta bancaria|corriente, tarjeta credito, direccion ip, num|numero movil",
    person_name: "apellido*, ap paterno|materno, nombre apellido*, nombre completo|pila|propio, \
                  nombre paciente|cliente|usuario|empleado|alumno, \
                  nombre madre|padre|conyuge|contacto|medico, primer|segundo nombre",
    birth_place: "pais|lugar|ciudad|provincia|municipio|localidad|estado|departamento|region nacimiento, \
                  pais|lugar nac",
    birth: "nacimiento*, fecha|fec|ano nacimiento, fecha|fec|fech|f|ano nac, cumpleanos",
    postal: "cp paciente|residencia|domicilio, cod|codigo post|postal",
    sex: "sexo, genero",
    race: "raza, etni*, grupo etnico, pueblo indigena, color piel",
    age: "edad, edades, grupo etario, rango etario",
    place: "ciudad, ciudades, municipio, municipios, localidad, provincia, provincias, pais, paises, \
            comarca, barrio, distrito, departamento, comunidad autonoma, ccaa, =estado, \
            estado residencia|domicilio, entidad federativa, lugar residencia, latitud, =longitud",
    family: "estado|est civil, situacion familiar|conyugal, hijo, hijos, num|numero|nro hijos, hogar, \
             hogares, tamano hogar|familia, conyuge*, unidad|nucleo familiar, personas cargo",
    education: "educaci*, educativ*, nivel estudios|academico|instruccion, escolaridad, escuela, \
                grado academico|instruccion, titulacion*, universidad*",
    occupation: "ocupacion*, profesion, profesiones, oficio, trabajo, puesto trabajo, empleo, empleador, \
                 situacion laboral, actividad economica|laboral, sector actividad, desemple*",
    nationality: "nacionalidad*, ciudadania*, idioma, idiomas, lengua materna, inmigra*",
    religion: "confesion relig*",
    event: "f ingreso, fecha|fec ingreso|alta|egreso|admision|visita|cita|consulta|atencion, \
            fecha|fec defuncion|muerte|fallecimiento|obito, \
            fecha operacion|intervencion|cirugia|procedimiento, fecha compra|contratacion|inscripcion|viaje, \
            =defuncion, fallec*, =exitus",
    notes: "comentario*, observacion*, anotacion*, texto libre, =notas, notas clinicas|medicas, \
            nota clinica|medica",
    health: "enfermedad*, patologia*, sintoma*, tratamiento*, medicamento*, medicacion*, farmaco, farmacos, \
             receta*, alergi*, embaraz*, discapacid*, vih, sida, causa muerte|defuncion, \
             motivo consulta|ingreso, antecedentes medic*|clinic*|famil*|personales|patologic*, \
             procedimiento*, grupo sanguineo, comorbilidad*, diag ppal|princ|principal|secundari*, =cie, \
             codigo|cod cie",
    money: "ingresos, ingreso mensual|anual|familiar|bruto|neto, renta, sueldo*, nomina, deuda*, patrimonio",
    private: "partido politico, afiliacion|orientacion|opinion politica, ideologia*, sindicato*, sindical*, \
              delito*, condena*, antecedentes penales",
    address: "=direccion, direccion paciente|cliente|domicilio|residencia|habitual|completa, domicilio, \
              calle, avenida",
    name: "=nombre, =nombres",
    record: "num|numero|nro episodio|ingreso|visita|consulta|expediente|caso|registro, \
             num|numero|nro factura|pedido|orden|fila, num|numero folio, identificador, expediente",
    counts: "tipo, cantidad",
    links: "de, del, el, la, los, las, al, y",
    missing: "#¡valor!, #¿nombre?, #¡ref!, #¡num!, #¡div/0!, #n/d, n/d, s/d, s. d., sd, desconocido, desconocida, desconoce, \
              no consta, no disponible, no informado, no registrado, no aplica, no procede, sin dato, sin datos, \
              sin información, se desconoce, ns/nc, vacío",
};

#[cfg(test)]
mod tests {
    use super::super::tests::mean;

    #[test]
    fn what_spanish_names_mean() {
        mean(
            "a person's number",
            "id_paciente, PacienteID, Nº de paciente, num_historia_clinica, NHC, DNI, NIF, NIE",
        );
        mean(
            "a person's number",
            "Número de la Seguridad Social, tarjeta_sanitaria, codigo_cliente, CURP, nro_documento",
        );
        mean("a record number", "num_episodio, número de expediente, nro_factura, id_visita, identificador");
        mean(
            "a person's name",
            "apellidos, primer_apellido, Nombre y apellidos, nombre_completo, nombre_paciente",
        );
        mean("a name", "nombre, NOMBRE");
        mean("a place of birth", "pais_nacimiento, Lugar de nacimiento, municipio_nacimiento");
        mean(
            "a date of birth",
            "fecha_nacimiento, Fecha de nacimiento, FechaNacimiento, fec_nac, fnac, año de nacimiento",
        );
        mean("a postal code", "codigo_postal, código postal, CP, cp_residencia, cod_postal");
        mean("sex or gender", "sexo, género");
        mean("race or origin", "raza, etnia, grupo_étnico");
        mean("an age", "edad, Edad (años), grupo_edad");
        mean("a place", "ciudad, municipio, provincia, país, Comunidad Autónoma, estado, región, localidad");
        mean("family and marriage", "estado_civil, num_hijos, Número de hijos, hogar");
        mean("education", "nivel_educativo, nivel de estudios, educación, escolaridad");
        mean("an occupation", "ocupación, profesión, empleo, situacion_laboral");
        mean("nationality or language", "nacionalidad, idioma, lengua_materna");
        mean("a religion, which can be sensitive as well", "religión");
        let event = "the date of an event that others may have witnessed";
        mean(event, "fecha_ingreso, Fecha de alta, fecha_visita, fecha_defuncion, fallecido");
        mean("free text", "comentarios, observaciones, notas, Anotaciones");
        mean(
            "health data",
            "diagnóstico, diagnostico_principal, enfermedad, medicación, CIE10, causa_muerte, tratamiento",
        );
        mean("financial data", "ingresos, ingreso_mensual, salario, sueldo, renta");
        mean("private life", "orientación sexual, partido_politico, sindicato");
        mean("an address", "dirección, domicilio, calle, direccion_paciente");
        mean("contact or payment data", "teléfono, móvil, correo_electronico, numero_cuenta");
        mean("", "tipo_documento, direccion_viento, peso, talla, nombre_visitas, cantidad, estado_pedido");
    }
}
