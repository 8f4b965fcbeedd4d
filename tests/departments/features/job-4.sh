# jobgen slurm --site ./site.toml --constraint rtx8000 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=2
#SBATCH --mem=124G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --constraint=rtx8000
#SBATCH --partition=gpu
# jobgen: note: the launcher is srun, that of site site
